"""Loss of the terminal: detect it, and end the process without a busy loop."""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import suppress


def terminal_is_gone() -> bool:
    """Return whether the terminal of this process has been closed.

    A read would then return no data, forever.
    """
    stdin = sys.__stdin__
    if sys.platform == "win32" or stdin is None or not hasattr(select, "poll"):
        return False
    with suppress(OSError, ValueError):
        poll = select.poll()
        poll.register(stdin.fileno(), 0)
        return any(flags & (select.POLLHUP | select.POLLERR) for _, flags in poll.poll(0))
    return False


def die_of_hangup() -> None:
    """End the process as SIGHUP does by default, even if that signal is ignored."""
    if sys.platform == "win32":  # there a closed console ends its programs itself
        return
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGHUP)
