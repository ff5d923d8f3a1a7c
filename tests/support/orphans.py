"""What a test leaves running is ended: the next one would take what this process adopts for its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.processes import is_running, wait_until_ended

_THREADS = Path("/proc/self/task")


@contextmanager
def no_orphans() -> Iterator[None]:
    """End the processes, each in a session of its own, that are our children only since the block began.

    Among them are those that were started by a program which was killed, or by a server that ends by and by.
    """
    before = _children()
    yield
    while left := [pid for pid in _children() - before if _runs_elsewhere(pid)]:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            wait_until_ended(pid)


def _children() -> set[int]:
    found = set[int]()
    for file in _THREADS.glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found.update(map(int, file.read_text().split()))
    return found


def _runs_elsewhere(pid: int) -> bool:
    """Whether a process runs, in another session than ours: as commands and servers do, and no fixture."""
    with suppress(OSError):
        return is_running(pid) and os.getsid(pid) != os.getsid(0)
    return False
