"""The line above a session that is summarised."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text
from textual.message import Message
from textual.widget import Widget

from rolling_chat.tui.widgets.header import cut

SUMMARISED = "Older messages in this session have been summarized to maintain conversation quality."
_HOW = "esc or a click hides this"


class Banner(Widget):
    """One line, shown or hidden; posts `Dismissed` when it is clicked."""

    DEFAULT_CSS = """
    Banner { display: none; height: 1; padding: 0 1; background: $panel; color: $text-muted; }
    Banner.-shown { display: block; }
    """

    @dataclass
    class Dismissed(Message):
        """The person has read it."""

    def render(self) -> Text:
        """The row; how to hide it is said where there is room."""
        width, whole = self.content_size.width, f"{SUMMARISED} ({_HOW})"
        line = whole if cell_len(whole) <= width else cut(SUMMARISED, width)
        return Text(line, no_wrap=True, end="")

    @property
    def shown(self) -> bool:
        """Is it on the screen?"""
        return self.has_class("-shown")

    def show(self, *, shown: bool) -> None:
        """Put it on the screen, or take it away."""
        self.set_class(shown, "-shown")

    def on_click(self) -> None:
        """Whoever clicks has read it."""
        self.post_message(self.Dismissed())
