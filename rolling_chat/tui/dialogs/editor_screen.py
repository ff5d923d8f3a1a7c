"""A text to read and edit, on a screen of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static, TextArea

from rolling_chat.text import one_line, typed, visible
from rolling_chat.tui.dialogs.framed import FramedScreen

if TYPE_CHECKING:
    from textual.app import ComposeResult


class EditorScreen(FramedScreen[str | None]):
    """A screen to edit a text, with `lead` above it; ctrl+s returns the text, Esc returns None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "save", show=False, priority=True),
        Binding("escape,ctrl+c", "dismiss(None)", "close", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    EditorScreen > Vertical { width: 90%; max-width: 110; height: 90%; }
    EditorScreen #lead { height: auto; margin-bottom: 1; color: $text-muted; }
    EditorScreen TextArea { height: 1fr; border: none; padding: 0; background: $surface; }
    EditorScreen TextArea:focus { border: none; }
    """

    def __init__(self, title: str, lead: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._lead = lead
        self._text = typed(text)

    def compose(self) -> ComposeResult:
        """Lay out the lead above the text."""
        with Vertical() as box:
            box.border_title = one_line(self._title)
            box.border_subtitle = "ctrl+s save · esc close"
            yield Static(Text(visible(self._lead)), id="lead")
            yield TextArea(self._text, soft_wrap=True, show_line_numbers=False, compact=True)

    def on_mount(self) -> None:
        """Focus the text."""
        self.query_one(TextArea).focus()

    def action_save(self) -> None:
        """Close the screen and return the edited text."""
        self.dismiss(self.query_one(TextArea).text)
