"""Notify the user by a desktop notification or the bell while they look elsewhere.

There are three sequences for notifications. All are operating system commands, which terminals that do not
know them ignore. tmux and screen pass on none of them, only the bell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rolling_chat.settings.schema import Notify
from rolling_chat.text import one_line

_BELL = "\a"
_ESC, _END = "\x1b", "\x1b\\"
_MAX_TEXT = 120  # characters
_AWAY_SECONDS = 20.0  # without input, in a terminal that does not report its focus
# values of TERM_PROGRAM for terminals with iTerm2's sequence
_OF_ITERM = frozenset({"iTerm.app", "WezTerm", "ghostty", "rio"})


class Attention:
    """A notifier. `write` writes to the terminal, which `environ` describes."""

    def __init__(self, write: Callable[[str], object], environ: Mapping[str, str], way: Notify) -> None:
        self._write = write
        self._environ = environ
        self._way = way

    def call(self, line: str, *, has_focus: bool | None, idle_seconds: float) -> bool:
        """Notify a user who is looking elsewhere of `line`; return whether they are.

        `has_focus` is None if the terminal did not report it; then the time since the last key decides.
        """
        is_away = idle_seconds > _AWAY_SECONDS if has_focus is None else not has_focus
        if self._way != "off" and is_away:
            self._write(notification(line, self._environ) if self._way == "auto" else _BELL)
        return is_away


def notification(line: str, environ: Mapping[str, str]) -> str:
    """Return the sequence that shows `line` on the desktop, or the bell for an unknown terminal."""
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
