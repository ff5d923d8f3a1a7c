"""The screen until there is a chat to show: where its parts will be, and a box that takes keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Static, TextArea

from rolling_chat.tui.widgets.header import Header, short_folder

if TYPE_CHECKING:
    from textual.app import ComposeResult


class StartScreen(Screen[None]):
    """Shows what is typed; whoever shows it keeps the keys and types them again where they belong."""

    # the rows and the frame of the chat's own screen, which takes its place
    CSS_PATH = "chat.tcss"
    DEFAULT_CSS = """
    StartScreen { layout: vertical; overflow: hidden; background: $background; }
    StartScreen .space { height: 1fr; }
    StartScreen .row { height: 1; padding: 0 1; color: $text-muted; }
    StartScreen .keys { background: $panel; }
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

    def compose(self) -> ComposeResult:
        """As the chat's own screen, from the top."""
        yield Header(id="header")
        yield Static(classes="space")
        yield Static("opening the session", classes="row", markup=False)
        yield Static(classes="row")
        with Horizontal(id="prompt-row"):
            yield Static("❯", id="prompt-mark")
            yield TextArea(
                compact=True,
                show_line_numbers=False,
                highlight_cursor_line=False,
                placeholder="Ask anything, or / for commands",
            )
        yield Static("ctrl+q quit", classes="row keys", markup=False)

    def on_mount(self) -> None:
        """Take keys."""
        self.query_one(Header).show("", short_folder(self._folder), "")
        self.set_focus(self.query_one(TextArea))

    def action_clear(self) -> None:
        """Empty the box."""
        self.query_one(TextArea).clear()
