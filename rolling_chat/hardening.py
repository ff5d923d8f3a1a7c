"""Close this process to others of the same user: its memory and its environment hold keys."""

from __future__ import annotations

import logging
import sys

_log = logging.getLogger("rolling_chat")

_PR_SET_DUMPABLE = 4  # linux/prctl.h


def close_process() -> bool:
    """Forbid the user's other processes to read this process's memory; return whether that worked.

    On Linux the kernel then gives `/proc/PID/environ` and `/proc/PID/mem` to root alone, lets no debugger
    attach, and writes no core dump. A program that is started from here begins open again. Elsewhere nothing
    is done.
    """
    if sys.platform != "linux":
        return False
    import ctypes  # noqa: PLC0415  # no other start should wait for it

    try:
        done = bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (OSError, AttributeError) as error:
        _log.info("the process could not be closed to others: %s", error)
        return False
    if not done:
        _log.info("the process could not be closed to others: errno %s", ctypes.get_errno())
    return done
