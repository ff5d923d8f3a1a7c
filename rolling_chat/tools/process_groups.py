"""Start, read and end a command together with its descendants, by each system's own means."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any, Protocol

from rolling_chat.programs import find_program
from rolling_chat.tools.leftover_processes import CHILDREN

_CHUNK = 65_536
_GRACE = 2.0  # seconds between asking a group to end and killing it
_PAUSE = 0.02  # seconds between two checks of ending processes


def group_options() -> dict[str, Any]:
    """Return the `subprocess` arguments that start a program in a process group of its own."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
    return {"start_new_session": True}


class GroupLeader(Protocol):
    """The leader of a process group, whose end can be awaited."""

    @property
    def pid(self) -> int:
        """Its process id, which is also that of the group."""
        ...

    async def wait(self) -> object:
        """Wait until it has ended."""
        ...


async def end_group(process: GroupLeader) -> None:
    """End a process group: SIGTERM, then SIGKILL for those left; SIGKILL at once if cancelled."""
    try:
        await _ask_to_end(process)
    finally:
        _kill(process.pid)
        await _reap(process)


async def listen(pipe: asyncio.Protocol, reading: int) -> Callable[[], None]:
    """Copy data from the descriptor `reading` to `pipe`; return a function that stops it.

    On Windows, a thread reads, because the event loop does not support anonymous pipes.
    """
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":
        Thread(target=_read_all, args=(reading, pipe, loop), name="command output", daemon=True).start()
        return lambda: None
    transport, _ = await loop.connect_read_pipe(lambda: pipe, os.fdopen(reading, "rb", buffering=0))
    return transport.close


def _read_all(reading: int, pipe: asyncio.Protocol, loop: asyncio.AbstractEventLoop) -> None:
    """Read until every writer has closed the pipe or the event loop is closed."""
    with suppress(OSError, RuntimeError):  # the loop was closed: the program is ending
        while data := os.read(reading, _CHUNK):
            loop.call_soon_threadsafe(pipe.data_received, data)
        loop.call_soon_threadsafe(pipe.connection_lost, None)
    os.close(reading)


async def _ask_to_end(process: GroupLeader) -> None:
    if sys.platform == "win32":
        return  # a program without a window of its own cannot be asked
    _signal_group(process.pid, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE):
            await process.wait()
            # a sandbox's outer process ignores signals, and ends before the processes in it
            while CHILDREN.group_runs(process.pid):  # noqa: ASYNC110 - there is no event to wait for
                await asyncio.sleep(_PAUSE)


def _kill(group: int) -> None:
    if sys.platform != "win32":
        _signal_group(group, signal.SIGKILL)
    elif taskkill := find_program("taskkill"):
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(  # noqa: S603 - the only variable argument is a number
                [taskkill, "/F", "/T", "/PID", str(group)], capture_output=True, check=False, timeout=_GRACE
            )
    else:
        with suppress(OSError):
            os.kill(group, signal.SIGTERM)  # on Windows, this kills it, but not its children


def _signal_group(group: int, number: int) -> None:
    if sys.platform != "win32":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


async def _reap(process: GroupLeader) -> None:
    """Wait for a process that was killed, even if cancelled, as it only takes milliseconds."""
    reaping = asyncio.create_task(process.wait())
    try:
        await asyncio.wait({reaping}, timeout=_GRACE)
    except asyncio.CancelledError:
        await asyncio.wait({reaping}, timeout=_GRACE)
        raise
