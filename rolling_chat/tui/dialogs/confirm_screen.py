"""A text to accept or reject, on a screen of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from rolling_chat.text import one_line, visible
from rolling_chat.tui.dialogs.framed import FramedScreen
from rolling_chat.tui.widgets.question import GRACE, IN_GRACE

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.timer import Timer


class ConfirmScreen(FramedScreen[bool | None]):
    """Asks the user to accept a text: returns True for Enter (labeled `answer`), False for Esc.

    With `other` there is a third answer: None for Tab. Enter and Tab count only after `GRACE` seconds
    without another key. If the screen may open while the user types, `typed` gets those keys.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "take", show=False),
        Binding("tab", "take(True)", "other", show=False, priority=True),
        Binding("escape,ctrl+c", "dismiss(False)", "leave", show=False),
    ]
    DEFAULT_CSS = """
    ConfirmScreen > Vertical { width: 90%; max-width: 110; height: auto; max-height: 90vh; }
    ConfirmScreen #question { height: auto; margin-bottom: 1; color: $text-muted; }
    ConfirmScreen VerticalScroll { height: auto; max-height: 70vh; scrollbar-size-vertical: 1; }
    ConfirmScreen VerticalScroll > Static { width: 1fr; height: auto; }
    """

    def __init__(
        self,
        title: str,
        question: str,
        text: str,
        answer: str,
        *,
        other: str = "",
        typed: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__()
        self._typed = typed
        self._listens = False
        self._timer: Timer | None = None
        self._title = title
        self._question = question
        self._text = text
        self._answer = answer
        self._other = other

    def compose(self) -> ComposeResult:
        """Lay out the question above the text that is accepted or rejected."""
        with Vertical() as box:
            box.border_title = one_line(self._title)
            with VerticalScroll():  # around both, so that the text can be read on a low screen
                yield Static(Text(visible(self._question)), id="question")
                yield Static(Text(visible(self._text), overflow="fold"))

    def on_mount(self) -> None:
        """Focus the text, so that the arrow keys scroll it."""
        self.query_one(VerticalScroll).focus()
        self._wait()

    def action_take(self, other: bool = False) -> None:
        """Accept, or give the other answer, unless another key was pressed just before."""
        if other and not self._other:
            return
        if self._listens:
            self.dismiss(None if other else True)
        else:
            self._wait()

    def on_key(self, event: events.Key) -> None:
        """Pass printable keys on to the prompt box."""
        if event.is_printable and event.character:
            event.stop()
            self._forward(event.character)

    def on_paste(self, event: events.Paste) -> None:
        """Pass pasted text on to the prompt box."""
        event.stop()
        self._forward(event.text)

    def _forward(self, text: str) -> None:
        self._wait()
        if self._typed is not None:
            self._typed(text)

    def _wait(self) -> None:
        self._listens = False
        self.query_one(Vertical).border_subtitle = IN_GRACE
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(GRACE, self._listen)

    def _listen(self) -> None:
        self._listens = True
        other = f" · tab {self._other}" if self._other else ""
        self.query_one(Vertical).border_subtitle = f"enter {self._answer} · esc cancel{other}"
