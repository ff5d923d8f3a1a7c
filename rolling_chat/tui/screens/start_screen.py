"""The screen until there is a chat to show: where its parts will be, and a box that takes keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static, TextArea

from rolling_chat.tui.widgets.frame import PromptFrame
from rolling_chat.tui.widgets.header import Header, short_folder

if TYPE_CHECKING:
    from textual.app import ComposeResult


class StartScreen(Screen[None]):
    """Shows what is typed; whoever shows it keeps the keys and types them again where they belong."""

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
        """As the chat's own screen, from the top."""
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
        """From here on what is typed is seen."""
        self.query_one(Header).show("", short_folder(self._folder), "")
        self.set_focus(self.query_one(TextArea))

    def action_clear(self) -> None:
        """Empty the box."""
        self.query_one(TextArea).clear()
