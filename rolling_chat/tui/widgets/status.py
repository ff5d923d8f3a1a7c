"""The status line: what is being done, and what the draft would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text
from textual.widget import Widget

from rolling_chat.text import one_line
from rolling_chat.tui.widgets.header import cut

if TYPE_CHECKING:
    from textual.app import RenderResult

_SPIN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SPINS_A_SECOND = 8


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
        """Draw `left`, and the first of `right` that takes no more than half of the row.

        `now` (seconds) turns the sign of activity.
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
