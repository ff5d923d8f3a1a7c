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

from rolling_chat.text import exact_spans, visible

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.timer import Timer

GRACE = 0.4  # seconds in which keys meant for the prompt box answer nothing
IN_GRACE = "one moment…"
_ELSEWHERE = "tab answers"  # the keys go to the draft in the prompt box
_LEAST_WAIT = 0.02  # seconds, for a clock and a timer that do not quite agree


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: the key that gives it, what it does, and the value that comes back.

    `escape` marks the harmless answer: esc gives it too, and at once, without a grace.
    """

    key: str
    label: str
    value: str
    escape: bool = False

    def hint(self, *, listening: bool) -> tuple[str, str] | None:
        """The keys that give it now and what it does; None where no key does."""
        keys = [self.key] if listening and self.key else []
        keys += ["esc"] if self.escape else []
        return ("/".join(keys), self.label) if keys else None


class Question(Vertical, can_focus=True):
    """Asks; posts `Answered`, or `Typed` for keys that were meant for the prompt box.

    Without the focus no key answers. For `GRACE` seconds after it has got it, and after every key that
    is no answer, none answers but esc: whoever was typing goes on typing. Its frame names the answers
    when keys count, and not before. The clock is handed in, in seconds.
    """

    DEFAULT_CSS = """
    Question {
        height: auto; margin: 0 1; padding: 0 1;
        border: round $warning; border-title-color: $warning; border-title-style: bold;
        border-subtitle-color: $foreground;
        background: $surface; color: $foreground;
    }
    Question.-grace { border-subtitle-color: $text-muted; }
    Question > VerticalScroll { height: auto; max-height: 35vh; scrollbar-size-vertical: 1; }
    Question > VerticalScroll > Static { width: 1fr; height: auto; }
    """

    @dataclass
    class HintsChanged(Message):
        """Other keys answer than before."""

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
        self.border_subtitle = IN_GRACE
        self._detail = detail
        self._clock = clock
        self._quiet_until = 0.0
        self._listening = False
        self._timer: Timer | None = None

    @property
    def hints(self) -> tuple[tuple[str, str], ...]:
        """The keys that answer now; none while others have the focus."""
        if not self.has_focus:
            return ()
        hints = (answer.hint(listening=self._listening) for answer in self.answers)
        return tuple(hint for hint in hints if hint is not None)

    def compose(self) -> ComposeResult:
        """What would be done, whole; its frame names the answers."""
        with VerticalScroll(can_focus=False):
            yield Static(_exactly(self._detail), id="detail")

    def on_mount(self) -> None:
        """Who gets the focus is the screen's to say."""
        self._show_hints(listening=False)

    def watch_has_focus(self, has_focus: bool) -> None:
        """The grace begins when keys come here; keys that go elsewhere answer nothing."""
        super().watch_has_focus(has_focus)
        if has_focus:
            self._wait()
        else:
            self._show_hints(listening=False)

    @property
    def harmless(self) -> Answer | None:
        """The answer that esc gives, if there is one."""
        return next((answer for answer in self.answers if answer.escape), None)

    def leave(self) -> None:
        """Give the harmless answer."""
        if self.harmless is not None:
            self.post_message(self.Answered(self.harmless.value))

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
        if key == "escape":
            self.leave()
        elif scroll is not None:
            getattr(self.query_one(VerticalScroll), scroll)(animate=False)
        elif answer is not None and self._listening:
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
        """No key answers for a while; each call begins the while anew."""
        self._quiet_until = self._clock() + GRACE
        self._show_hints(listening=False)
        self._listen_in(GRACE)

    def _listen_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(seconds, self._listen)

    def _listen(self) -> None:
        left = self._quiet_until - self._clock()
        if left > 0:
            self._listen_in(max(left, _LEAST_WAIT))
        elif self.has_focus:
            self._show_hints(listening=True)

    def _show_hints(self, *, listening: bool) -> None:
        self._listening = listening
        named = " · ".join(f"{key} {what}" for key, what in self.hints)
        quiet = IN_GRACE if self.has_focus else _ELSEWHERE
        self.border_subtitle = named if listening else quiet
        self.set_class(not listening, "-grace")
        self.post_message(self.HintsChanged())


def _exactly(detail: str) -> Text:
    """Write every character of what would be done; codes are reversed, so that none can be forged."""
    text = Text(overflow="fold")
    for span, is_code in exact_spans(detail):
        text.append(span, "reverse" if is_code else None)
    return text
