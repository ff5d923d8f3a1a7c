"""The line above a session with a summary in its prompt."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text
from textual.message import Message
from textual.widget import Widget

from rolling_chat.tui.widgets.header import cut

SUMMARIZED = "Older messages in this session have been summarized to maintain conversation quality."
_HOW = "esc or a click hides this"


class Banner(Widget):
    """A one-line notice, shown or hidden, that posts `Dismissed` when it is clicked."""

    DEFAULT_CSS = """
    Banner { display: none; height: 1; padding: 0 1; background: $panel; color: $text-muted; }
    Banner.-shown { display: block; }
    """

    @dataclass
    class Dismissed(Message):
        """Posted when the user clicks the banner away."""

    def render(self) -> Text:
        """Draw the notice, and a hint on how to hide it if there is room."""
        width, whole = self.content_size.width, f"{SUMMARIZED} ({_HOW})"
        line = whole if cell_len(whole) <= width else cut(SUMMARIZED, width)
        return Text(line, no_wrap=True, end="")

    @property
    def shown(self) -> bool:
        """Whether the banner is on the screen."""
        return self.has_class("-shown")

    def show(self, *, shown: bool) -> None:
        """Show or hide the banner."""
        self.set_class(shown, "-shown")

    def on_click(self) -> None:
        """Post `Dismissed`."""
        self.post_message(self.Dismissed())
