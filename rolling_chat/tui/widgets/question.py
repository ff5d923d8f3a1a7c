"""A question below the transcript: a description of the action, and the answers to choose from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text
from textual import events
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from rolling_chat.agent.questions import Answer, Reply, UserQuestion
from rolling_chat.figures import plural
from rolling_chat.text import exact_spans, one_line, visible
from rolling_chat.tui.widgets.detail import Detail

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.timer import Timer

_DIFF_COLORS = {"+": "success", "-": "error", "@": "accent"}  # by the first character of a line
GRACE = 0.4  # seconds during which Enter, probably meant for the prompt box, answers nothing
IN_GRACE = "one moment…"
_ELSEWHERE = "tab answers"  # shown while the prompt box has the focus
_SAY_WHY = "write why, enter sends it"
_MIN_WAIT = 0.02  # seconds, as clock and timer may differ slightly
_SHARE = 0.5  # of the screen's rows, for description and answers
_CROWDED_SHARE = 0.15  # of the screen's rows, for the description while other widgets need room
_MIN_ROWS = 3  # for the description: its first row, the count of hidden rows, its last row
_ROWS_FOR_ALL = 28  # on a lower screen, an unfocused question hides its answers
_ROWS_FOR_A_LIST = 20  # on a lower screen, one row shows the selected answer


class Question(Vertical, can_focus=True):
    """A question to the user; posts `Answered`, or `Typed` for keys that were meant for the prompt box.

    A digit or an arrow selects; only Enter answers, and letters never do. A digit followed by another
    character was meant for the prompt box, too. For `GRACE` seconds after the question gets the focus, and
    after every key that was meant for the prompt box, Enter answers nothing. `clock` is in seconds.
    """

    DEFAULT_CSS = """
    Question {
        height: auto; margin: 0 1; padding: 0 1;
        border: round $warning; border-title-color: $warning; border-title-style: bold;
        border-subtitle-color: $foreground;
        background: $surface; color: $foreground;
    }
    Question.-grace { border-subtitle-color: $text-muted; }
    Question > #answers { width: 1fr; height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    @dataclass
    class HintsChanged(Message):
        """Posted when the keys that answer the question changed."""

    @dataclass
    class Answered(Message):
        """Posted when the user answered `question`."""

        question: Question
        reply: Reply

    @dataclass
    class WordsWanted(Message):
        """Posted when the user chose an answer with words: the prompt box should take the focus."""

    @dataclass
    class Typed(Message):
        """Posted with text that was meant for the prompt box."""

        text: str

    @dataclass
    class Erased(Message):
        """Posted when a backspace was meant for the prompt box."""

    def __init__(
        self,
        asked: UserQuestion,
        clock: Callable[[], float],
        *,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._is_diff = asked.is_diff
        self.border_title = Text(visible(asked.title)).plain.replace("[", r"\[")
        self.border_subtitle = IN_GRACE
        self._answers = asked.answers
        self._detail = Detail(_exactly(asked.detail), part="hunk" if asked.is_diff else "", id="detail")
        self._list = Static(id="answers")
        self._is_list: bool | None = None  # one row per answer, or only the selected one
        self._room = (0, False)
        self._selected = 0
        self._digit = ""  # the last key, if it was a digit that selects
        self._worded: Answer | None = None  # the answer whose words are being written
        self._clock = clock
        self._quiet_until = 0.0
        self._listening = False
        self._listening_since = 0.0  # in the clock of messages; an earlier key was typed before that
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """Create the description, with a diff in the theme's colors, and the answers."""
        if self._is_diff:  # must precede the wrapping of lines
            colors = self.app.theme_variables
            self._detail.color_lines({sign: colors[name] for sign, name in _DIFF_COLORS.items()})
        yield self._detail
        yield self._list

    def on_mount(self) -> None:
        """Fit the question to the screen's height."""
        self.fit(self.app.size.height)

    def fit(self, height: int, *, crowded: bool = False) -> None:
        """Limit the height to what a screen of `height` rows can spare, less if it is `crowded`."""
        self._room = (height, crowded)
        is_crowded = crowded or (height < _ROWS_FOR_ALL and not self.has_focus)
        is_list = height >= _ROWS_FOR_A_LIST
        self._list.display = not is_crowded
        rows = int(_CROWDED_SHARE * height) if is_crowded else int(_SHARE * height)
        others = 0 if is_crowded else len(self._answers) if is_list else 1
        self._detail.allow_rows(max(1 if is_crowded else _MIN_ROWS, rows - others))
        if self._is_list != is_list:
            self._is_list = is_list
            self._show()

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers that can be given now."""
        return tuple(answer for answer in self._answers if not answer.unseen or self._detail.unseen)

    @property
    def hints(self) -> tuple[tuple[str, str], ...]:
        """The keys that work now; none while another widget has the focus."""
        if not self.has_focus:
            return ()
        hints = [("enter", "answer"), ("↑↓", "choose")] if self._listening else []
        if self._detail.unseen:
            hints.append(("pagedown", "more lines"))
        if self.harmless is not None:
            hints.append(("esc", self.harmless.label.lower()))
        return tuple(hints)

    @property
    def harmless(self) -> Answer | None:
        """The answer that Esc gives, if any."""
        return next((answer for answer in self._answers if answer.escape), None)

    @property
    def takes_words(self) -> bool:
        """Whether the user is writing the words of an answer in the prompt box."""
        return self._worded is not None

    def scroll_pages(self, pages: int) -> bool:
        """Scroll the description; return False if all of it is in sight or the question has no focus."""
        if not self.has_focus or self._detail.is_whole:
            return False
        self._digit = ""
        self._detail.scroll_pages(pages)
        return True

    def give_words(self, words: str) -> None:
        """Answer with the words that the user wrote, if the chosen answer takes words."""
        if self._worded is not None:
            self.post_message(self.Answered(self, Reply(self._worded.value, words)))

    def cancel(self) -> None:
        """Give the answer that Esc gives, if any."""
        if self.harmless is not None:
            self.post_message(self.Answered(self, Reply(self.harmless.value)))

    def watch_has_focus(self, has_focus: bool) -> None:
        """Start the grace period when the question gets the focus; take no answer after it loses it."""
        super().watch_has_focus(has_focus)
        self._digit = ""
        height, crowded = self._room
        self.fit(height, crowded=crowded)
        if has_focus:
            self._selected, self._worded = 0, None
            self._wait()
        else:
            self._listening = False
            self._show()

    def on_paste(self, event: events.Paste) -> None:
        """Pass pasted text on to the prompt box; it is never an answer."""
        event.stop()
        self._type(event.text)

    def on_key(self, event: events.Key) -> None:
        """Select, answer or scroll, and pass on keys that were meant for the prompt box."""
        key, char = event.key, event.character if event.is_printable else None
        if key == "escape":
            self.cancel()
        elif key == "enter":
            self._answer(event.time)
        elif key in ("up", "down"):
            self._move(1 if key == "down" else -1)
        elif key in ("home", "end"):
            self._digit = ""
            self._detail.scroll_to_edge(1 if key == "end" else -1)
        elif char is not None and not self._digit and self._is_answer(char):
            self._select(int(char) - 1, char)
        elif char:
            self._type(char)
        elif key == "backspace":
            self._erase()
        else:
            return
        event.stop()
        event.prevent_default()

    def _on_detail_scrolled(self) -> None:
        self._selected = self._index
        self._show()

    @property
    def _index(self) -> int:
        """Return the index of the selected answer; the last answer vanishes once everything was seen."""
        return min(self._selected, len(self.answers) - 1)

    def _is_answer(self, char: str) -> bool:
        return char.isascii() and char.isdigit() and 1 <= int(char) <= len(self.answers)

    def _select(self, index: int, digit: str = "") -> None:
        self._selected, self._digit = index % len(self.answers), digit
        self._show()

    def _move(self, step: int) -> None:
        index = self._index + step
        if index < 0:
            # up also means the prompt history, so up and then Enter must approve nothing
            harmless = [
                at for at, answer in enumerate(self.answers) if not (answer.approves or answer.unseen)
            ]
            index = harmless[-1]
        self._select(index)

    def _type(self, text: str) -> None:
        text, self._digit, self._selected = self._digit + text, "", 0
        self._wait()
        self.post_message(self.Typed(text))

    def _erase(self) -> None:
        had_digit, self._digit, self._selected = self._digit, "", 0
        self._wait()
        if not had_digit:
            self.post_message(self.Erased())

    def _answer(self, typed_at: float) -> None:
        answer = self.answers[self._index]
        if not self._listening or typed_at < self._listening_since:
            self._wait()
        elif answer.takes_words:
            self._worded = answer
            self.post_message(self.WordsWanted())
        elif not answer.approves or not self._detail.unseen:
            self.post_message(self.Answered(self, Reply(answer.value)))

    def _wait(self) -> None:
        """Start the grace period anew: Enter answers nothing until it ends."""
        self._quiet_until = self._clock() + GRACE
        self._listening = False
        self._show()
        self._listen_in(GRACE)

    def _listen_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(seconds, self._listen)

    def _listen(self) -> None:
        left = self._quiet_until - self._clock()
        if left > 0:
            self._listen_in(max(left, _MIN_WAIT))
        elif self.has_focus:
            self._listening, self._listening_since = True, Message().time
            self._show()

    def _show(self) -> None:
        if not self.is_mounted:
            return
        lines = [self._line(number, answer) for number, answer in enumerate(self.answers, start=1)]
        shown = lines if self._is_list else [lines[self._index]]
        self._list.update(Text("\n", no_wrap=True, overflow="ellipsis").join(shown))
        if self.takes_words:
            self.border_subtitle = _SAY_WHY
        elif not self.has_focus:
            self.border_subtitle = _ELSEWHERE
        else:
            keys = " · ".join(f"{key} {what}" for key, what in self.hints)
            self.border_subtitle = keys if self._listening else IN_GRACE
        self.set_class(not self._listening, "-grace")
        self.post_message(self.HintsChanged())

    def _line(self, number: int, answer: Answer) -> Text:
        is_selected = number == self._index + 1
        count = "" if self._is_list else f" of {len(self.answers)}"
        unseen = self._detail.unseen if answer.approves else 0
        after = f" (after {plural(unseen, 'line')} not seen yet)" if unseen else ""
        style = "dim" if unseen else "bold" if is_selected else ""
        return Text(f"{'❯' if is_selected else ' '} {number}{count} {one_line(answer.label)}{after}", style)


def _exactly(detail: str) -> Text:
    """Render a text exactly; escaped codes are in reverse video, which plain text cannot imitate."""
    text = Text(overflow="fold")
    for span, is_code in exact_spans(detail):
        text.append(span, "reverse" if is_code else None)
    return text
