"""The ends of processes, of others' children, too."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.patience import PATIENCE_SECONDS


def is_running(pid: int) -> bool:
    """Whether a process has not ended; one that nobody has waited for yet has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def has_ended(pid: int) -> None:
    """Wait until a process has ended."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    with _watched(pid) as process:
        if process is not None:
            loop.add_reader(process, ended.set)
            try:
                await asyncio.wait_for(ended.wait(), PATIENCE_SECONDS)
            finally:
                loop.remove_reader(process)


def wait_until_ended(pid: int, seconds: float = PATIENCE_SECONDS) -> None:
    """Block until a process has ended."""
    with _watched(pid) as process:
        assert process is None or select.select([process], [], [], seconds)[0], f"{pid} did not end"


@contextmanager
def _watched(pid: int) -> Iterator[int | None]:
    """Yield a descriptor that can be read once a process has ended; None where it is gone already."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield process
    finally:
        os.close(process)
