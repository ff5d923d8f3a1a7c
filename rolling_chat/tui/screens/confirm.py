"""A text to take or leave, on a screen of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from rolling_chat.text import one_line, visible
from rolling_chat.tui.screens.framed import FramedScreen

if TYPE_CHECKING:
    from textual.app import ComposeResult


class ConfirmScreen(FramedScreen[bool]):
    """True for enter, False for esc; `question` stands above the text, `answer` is what enter does."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "dismiss(True)", "take", show=False),
        Binding("escape,ctrl+c", "dismiss(False)", "leave", show=False),
    ]
    DEFAULT_CSS = """
    ConfirmScreen > Vertical { width: 90%; max-width: 110; height: auto; max-height: 90vh; }
    ConfirmScreen #question { height: auto; margin-bottom: 1; color: $text-muted; }
    ConfirmScreen VerticalScroll { height: auto; max-height: 70vh; scrollbar-size-vertical: 1; }
    ConfirmScreen VerticalScroll > Static { width: 1fr; height: auto; }
    """

    def __init__(self, title: str, question: str, text: str, answer: str) -> None:
        super().__init__()
        self._title = title
        self._question = question
        self._text = text
        self._answer = answer

    def compose(self) -> ComposeResult:
        """The question, the text, the keys."""
        with Vertical() as box:
            box.border_title = one_line(self._title)
            box.border_subtitle = f"enter {self._answer} · esc leave it"
            yield Static(Text(visible(self._question)), id="question")
            with VerticalScroll():
                yield Static(Text(visible(self._text), overflow="fold"))

    def on_mount(self) -> None:
        """The arrows scroll."""
        self.query_one(VerticalScroll).focus()
