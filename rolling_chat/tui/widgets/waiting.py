"""The list above the prompt box of messages waiting to be sent, and when they will be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widget import Widget

from rolling_chat.mentions import plain
from rolling_chat.text import one_line
from rolling_chat.tui.widgets.header import cut

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.app import RenderResult

    from rolling_chat.agent import WaitingMessage

_MAX_ROWS = 3
_NEXT, _AFTER = ("with the next result: ", "next: "), ("after this turn: ", "after: ")
_WIDE = 60  # cells; the longer words need as many
_MAX_CHARS = 500


class WaitingList(Widget):
    """A row for each waiting message, at most three; hidden while there are none."""

    DEFAULT_CSS = """
    WaitingList { height: 0; padding: 0 1; background: $background; color: $text-muted; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._messages: tuple[WaitingMessage, ...] = ()

    def show(self, messages: Iterable[WaitingMessage]) -> None:
        """Show the newest messages, only one on a low screen, and a count of the others."""
        fresh, max_rows = tuple(messages), 1 if self.screen.has_class("-low") else _MAX_ROWS
        rows = min(len(fresh), max_rows)
        if self.styles.height is None or self.styles.height.value != rows:
            self.styles.height = rows
        if fresh != self._messages:
            self._messages = fresh
            self.refresh()

    def render(self) -> RenderResult:
        """Draw the rows, newest last."""
        rows = max(1, self.size.height)
        shown = self._messages[-rows:]
        above = len(self._messages) - len(shown)
        lines = Text(no_wrap=True, end="")
        for index, message in enumerate(shown):
            more = f" (+{above})" if above and not index else ""
            when = (_AFTER if message.after_turn else _NEXT)[self.size.width < _WIDE]
            text = one_line(plain(message.text), _MAX_CHARS)
            lines.append("\n" if index else "")
            lines.append(f"↳ {when}", "italic").append(cut(text, self.size.width - len(when) - 2 - len(more)))
            lines.append(more)
        return lines
