"""The start screen: arranged like the chat screen, with a box that accepts keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static, TextArea

from rolling_chat.tui.widgets.frame import PromptFrame
from rolling_chat.tui.widgets.header import Header, short_folder

if TYPE_CHECKING:
    from textual.app import ComposeResult


class StartScreen(Screen[None]):
    """A screen shown until the chat is open, which echoes what is typed."""

    DEFAULT_CSS = """
    StartScreen { layout: vertical; overflow: hidden; background: $background; }
    StartScreen .space { height: 1fr; padding: 0 1; color: $text-muted; content-align: left bottom; }
    StartScreen .keys { height: 1; padding: 0 1; color: $text-muted; background: $panel; }
    StartScreen TextArea {
        height: auto; max-height: 6; padding: 0; border: none;
        background: $background; color: $foreground;
    }
    StartScreen TextArea:focus { border: none; }
    StartScreen TextArea .text-area--cursor-line { background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "clear", show=False, priority=True)]

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def parts(self) -> ComposeResult:
        """Yield the widgets from the top, arranged as on the chat's screen."""
        yield Header(id="header")
        yield Static("opening the session\n", classes="space", markup=False)
        yield PromptFrame(
            TextArea(
                compact=True,
                show_line_numbers=False,
                highlight_cursor_line=False,
                placeholder="Ask anything, or / for commands",
            )
        )
        yield Static("ctrl+q quit", classes="keys", markup=False)

    def take_keys(self) -> None:
        """Focus the box, so that typed keys are echoed."""
        self.query_one(Header).show("", short_folder(self._folder), "")
        self.set_focus(self.query_one(TextArea))

    def echo(self, event: events.Key | events.Paste) -> None:
        """Show what was typed while another screen was open."""
        box = self.query_one(TextArea)
        match event:
            case events.Paste():
                box.insert(event.text)
            case events.Key(key="backspace"):
                box.action_delete_left()

    def action_clear(self) -> None:
        """Clear the box."""
        self.query_one(TextArea).clear()
