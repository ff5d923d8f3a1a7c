"""Calls the user back by a desktop notification or the bell, when the terminal is not being looked at.

Terminals know three sequences for a notification, and print nothing for one that they do not know only if
it is an operating system command, as all three are. tmux and screen pass none of them on, but the bell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rolling_chat.settings.schema import Notify
from rolling_chat.text import one_line

_BELL = "\a"
_ESC, _END = "\x1b", "\x1b\\"
_MAX_TEXT = 120  # characters
_AWAY_SECONDS = 20.0  # without a key or the mouse, in a terminal that does not say whether it has the focus
# by TERM_PROGRAM: what iTerm2 began
_OF_ITERM = frozenset({"iTerm.app", "WezTerm", "ghostty", "rio"})


class Attention:
    """Calls for the user's attention. `write` writes to the terminal, `environ` says what that is."""

    def __init__(self, write: Callable[[str], object], environ: Mapping[str, str], way: Notify) -> None:
        self._write = write
        self._environ = environ
        self._way = way

    def call(self, line: str, *, has_focus: bool | None, idle_seconds: float) -> bool:
        """Tell the user `line`, unless the terminal is looked at; return whether it is not.

        `has_focus` is None where the terminal has not said so; then the time since the last key decides.
        """
        is_away = idle_seconds > _AWAY_SECONDS if has_focus is None else not has_focus
        if self._way != "off" and is_away:
            self._write(notification(line, self._environ) if self._way == "auto" else _BELL)
        return is_away


def notification(line: str, environ: Mapping[str, str]) -> str:
    """Return what shows `line` on the desktop, or rings the bell where no way is known to."""
    text = one_line(line, _MAX_TEXT)
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    if environ.get("TMUX") or environ.get("STY") or term.startswith(("tmux", "screen")):
        return _BELL
    if term == "xterm-kitty":
        return f"{_ESC}]99;;{text}{_END}"
    if program in _OF_ITERM or term == "xterm-ghostty":
        return f"{_ESC}]9;{text}{_BELL}"
    if term.startswith(("foot", "rxvt-unicode")):
        return f"{_ESC}]777;notify;Rolling Chat;{text.replace(';', ',')}{_BELL}"
    return _BELL
