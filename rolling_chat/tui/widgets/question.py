"""A question below the transcript: what would be done, and the keys that answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import Static

from rolling_chat.text import visible

if TYPE_CHECKING:
    from textual.app import ComposeResult

GRACE = 0.4  # seconds in which keys meant for the prompt box answer nothing


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: the key that gives it, what it does, and the value that comes back.

    `at_once` is for a harmless answer, which needs no grace. `shown` is how its key is named; an
    answer without a label is not named at all.
    """

    key: str
    label: str
    value: str
    at_once: bool = False
    shown: str = ""

    @property
    def hint(self) -> tuple[str, str]:
        """The key and what it does."""
        return (self.shown or self.key, self.label)


class Question(Vertical, can_focus=True):
    """Asks; posts `Answered`, or `Typed` for keys that were meant for the prompt box.

    For `GRACE` seconds after it appears, and after every key that is no answer, no key answers:
    whoever was typing goes on typing. The clock is handed in, in seconds.
    """

    DEFAULT_CSS = """
    Question {
        height: auto; margin: 0 1; padding: 0 1;
        border: round $warning; border-title-color: $warning; border-title-style: bold;
        border-subtitle-color: $foreground;
        background: $surface; color: $foreground;
    }
    Question > VerticalScroll { height: auto; max-height: 35vh; scrollbar-size-vertical: 1; }
    Question > VerticalScroll > Static { width: 1fr; height: auto; }
    """

    @dataclass
    class Answered(Message):
        """The person answered."""

        value: str

    @dataclass
    class Typed(Message):
        """Text that was meant for the prompt box."""

        text: str

    @dataclass
    class Erased(Message):
        """A backspace that was meant for the prompt box."""

    _SCROLLS: ClassVar[dict[str, str]] = {
        "up": "scroll_up",
        "down": "scroll_down",
        "pageup": "scroll_page_up",
        "pagedown": "scroll_page_down",
        "home": "scroll_home",
        "end": "scroll_end",
    }

    def __init__(
        self,
        title: str,
        detail: str,
        answers: Sequence[Answer],
        clock: Callable[[], float],
        *,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.border_title = Text(visible(title)).plain.replace("[", r"\[")
        self.answers = tuple(answers)
        self.border_subtitle = " · ".join(f"{key} {what}" for key, what in self.hints)
        self._detail = detail
        self._clock = clock
        self._quiet_until = 0.0

    @property
    def hints(self) -> tuple[tuple[str, str], ...]:
        """The keys that answer."""
        return tuple(answer.hint for answer in self.answers if answer.label)

    def compose(self) -> ComposeResult:
        """What would be done, whole; its frame names the answers."""
        with VerticalScroll(can_focus=False):
            yield Static(Text(visible(self._detail), overflow="fold"), id="detail")

    def on_mount(self) -> None:
        """The grace begins when it can be seen."""
        self._wait()
        self.focus()

    def on_paste(self, event: events.Paste) -> None:
        """Pasted text is never an answer."""
        event.stop()
        self._wait()
        self.post_message(self.Typed(event.text))

    def on_key(self, event: events.Key) -> None:
        """Answer, scroll, or pass on what was meant for the prompt box."""
        key = event.key
        scroll = self._SCROLLS.get(key)
        answer = next((answer for answer in self.answers if key == answer.key), None)
        if scroll is not None:
            getattr(self.query_one(VerticalScroll), scroll)(animate=False)
        elif answer is not None and (answer.at_once or self._clock() >= self._quiet_until):
            self.post_message(self.Answered(answer.value))
        elif event.is_printable and event.character:
            self._wait()
            self.post_message(self.Typed(event.character))
        elif key == "backspace":
            self._wait()
            self.post_message(self.Erased())
        elif key == "enter":
            self._wait()
        else:
            return
        event.stop()
        event.prevent_default()

    def _wait(self) -> None:
        self._quiet_until = self._clock() + GRACE
