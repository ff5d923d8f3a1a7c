"""What a test leaves running is ended: the next one would take what this process adopts for its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.support.processes import is_running, wait_until_ended

_THREADS = "/proc/self/task"
_MOST = 65_536  # bytes: some ten thousand children


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
    """Find all children of this process; it is done twice a test."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # there are none, which is known soonest so
        return set()
    found = set[int]()
    for thread in os.listdir(_THREADS):  # noqa: PTH208 - a path for each takes ten times as long
        with suppress(OSError):  # the thread has ended
            file = os.open(f"{_THREADS}/{thread}/children", os.O_RDONLY)
            try:
                found.update(map(int, os.read(file, _MOST).split()))
            finally:
                os.close(file)
    return found


def _runs_elsewhere(pid: int) -> bool:
    """Whether a process runs, in another session than ours: as commands and servers do, and no fixture."""
    with suppress(OSError):
        return is_running(pid) and os.getsid(pid) != os.getsid(0)
    return False
