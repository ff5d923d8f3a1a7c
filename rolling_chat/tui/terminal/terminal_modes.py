"""The terminal's modes: saved before the screen is drawn, restored when the screen cannot do it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from threading import Thread
from typing import Any

# cancel a truncated sequence, end a frame; paste marks, size reports, mouse and focus reports off; line wrap
# on; pop the kitty keyboard flags, then leave the alternate screen (which has its own flags); cursor on
_RESET = (
    b"\x18\x1b[?2026l\x1b[?2004l\x1b[?2048l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"
    b"\x1b[?1004l\x1b[?7h\x1b[<u\x1b[?1049l\x1b[?25h\x1b[0m"
)
_MAX_WRITE_SECONDS = 1.0  # writing to a terminal that nobody reads would block forever


class TerminalModes:
    """The terminal's modes when this object was created; empty without a terminal."""

    def __init__(self) -> None:
        self._settings = _line_settings()

    def restore(self) -> None:
        """Restore the terminal's modes, from any thread and without using the screen."""
        if self._settings is None:
            return
        _restore_line_settings(self._settings)
        writing = Thread(target=_write_reset, daemon=True)
        writing.start()
        writing.join(_MAX_WRITE_SECONDS)


def _write_reset() -> None:
    with suppress(OSError, ValueError, AttributeError):
        os.write(sys.__stderr__.fileno(), _RESET)  # type: ignore[union-attr]  # suppressed


if sys.platform == "win32":

    def _line_settings() -> list[Any] | None:
        """Return None: a Windows console separates a program's settings from the shell's."""
        return None

    def _restore_line_settings(settings: list[Any]) -> None:
        """Do nothing."""

else:
    import termios

    def _line_settings() -> list[Any] | None:
        if sys.__stdin__ is None:
            return None
        try:
            return termios.tcgetattr(sys.__stdin__)
        except (OSError, ValueError, termios.error):
            return None

    def _restore_line_settings(settings: list[Any]) -> None:
        if sys.__stdin__ is not None:
            with suppress(OSError, ValueError, termios.error):
                termios.tcsetattr(sys.__stdin__, termios.TCSANOW, settings)
