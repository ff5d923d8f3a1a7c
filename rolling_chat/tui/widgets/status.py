"""The status line: the current activity and the draft's price; and the row of the user's own command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text
from textual.widget import Widget

from rolling_chat.text import one_line, visible
from rolling_chat.tui.widgets.header import cut

if TYPE_CHECKING:
    from textual.app import RenderResult

_COLOR = re.compile(r"(\x1b\[[0-9;]*m)")
_MAX_LINE = 2_000  # characters of a line before its colors are read
_SPIN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SPINS_A_SECOND = 8


class UserStatus(Widget):
    """A row with the line printed by the user's status command, in its colors; hidden without one."""

    DEFAULT_CSS = """
    UserStatus { height: 1; padding: 0 1; background: $background; color: $text-muted; display: none; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._line = Text()

    def show(self, line: str) -> None:
        """Draw a line; of all control sequences, only ANSI colors take effect."""
        pieces = _COLOR.split(line[:_MAX_LINE])
        # odd pieces are colors, even ones text
        kept = "".join(piece if at % 2 else visible(piece, tabs=True) for at, piece in enumerate(pieces))
        self._line = Text.from_ansi(kept, no_wrap=True, end="")
        self.display = bool(self._line.plain.strip())
        self.refresh()

    def render(self) -> RenderResult:
        """Draw the row."""
        line = self._line.copy()
        line.truncate(self.size.width, overflow="ellipsis")
        return line


class StatusLine(Widget):
    """A row with the activity at the left, and a hint or the draft's price at the right."""

    DEFAULT_CSS = """
    StatusLine { height: 1; padding: 0 1; background: $background; color: $text-muted; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._left = ""
        self._right: tuple[str, ...] = ()
        self._busy = False
        self._now = 0.0

    def show(self, left: str, right: tuple[str, ...], *, busy: bool, now: float) -> None:
        """Draw `left`, and the first of `right` that fits half of the row.

        `now`, in seconds, drives the spinner.
        """
        spun = int(now * _SPINS_A_SECOND) if busy else 0
        before = (self._left, self._right, self._busy, int(self._now * _SPINS_A_SECOND) if self._busy else 0)
        self._left, self._right, self._busy, self._now = one_line(left), right, busy, now
        if before != (self._left, self._right, busy, spun):
            self.refresh()

    def render(self) -> RenderResult:
        """Draw the row."""
        width = self.size.width
        mark = f"{_SPIN[int(self._now * _SPINS_A_SECOND) % len(_SPIN)]} " if self._busy else ""
        right = next((words for words in self._right if cell_len(words) <= width // 2), "")
        left = cut(f"{mark}{self._left}", width - (cell_len(right) + 2 if right else 0))
        gap = max(1, width - cell_len(left) - cell_len(right))
        return Text(f"{left}{' ' * gap}{right}", no_wrap=True, end="")
