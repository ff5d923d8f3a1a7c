"""The line above a session that is summarised."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual.message import Message
from textual.widgets import Static

SUMMARISED = "Older messages in this session have been summarized to maintain conversation quality."
_HOW = "esc or a click hides this"


class Banner(Static):
    """Shown or hidden; posts `Dismissed` when it is clicked."""

    DEFAULT_CSS = """
    Banner { display: none; height: auto; padding: 0 1; background: $panel; color: $text-muted; }
    Banner.-shown { display: block; }
    """

    @dataclass
    class Dismissed(Message):
        """The person has read it."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(Text(f"{SUMMARISED} ({_HOW})"), id=id)

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
