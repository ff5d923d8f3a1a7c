"""Protect this process from others of the same user: its memory and environment contain keys."""

from __future__ import annotations

import logging
import sys

_log = logging.getLogger("rolling_chat")

_PR_SET_DUMPABLE = 4  # linux/prctl.h


def close_process() -> bool:
    """Forbid the user's other processes to read this process's memory; return whether that worked.

    On Linux, only root can then read `/proc/PID/environ` and `/proc/PID/mem`, no debugger can attach, and no
    core dump is written. Child processes are not protected. On other systems this does nothing.
    """
    if sys.platform != "linux":
        return False
    import ctypes  # noqa: PLC0415  # imported only by starts that need it

    try:
        done = bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (OSError, AttributeError) as error:
        _log.info("the process could not be closed to others: %s", error)
        return False
    if not done:
        _log.info("the process could not be closed to others: errno %s", ctypes.get_errno())
    return done
