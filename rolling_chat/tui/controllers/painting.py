"""When the chat screen redraws: changes at once, streamed text as often as its cost allows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from textual.css.query import NoMatches
from textual.widget import Widget

from rolling_chat.tui.state.fates import MessageIndices, item_fates
from rolling_chat.tui.widgets.banner import Banner
from rolling_chat.tui.widgets.gauge import Gauge
from rolling_chat.tui.widgets.header import Header
from rolling_chat.tui.widgets.keys import KeyBar, key_hints
from rolling_chat.tui.widgets.status import StatusLine
from rolling_chat.tui.widgets.todo_rows import TodoRows
from rolling_chat.tui.widgets.waiting import WaitingList

if TYPE_CHECKING:
    from textual.geometry import Size
    from textual.timer import Timer

    from rolling_chat.agent import Chat
    from rolling_chat.context.report import PromptReport
    from rolling_chat.tui.controllers.find_controller import FindController
    from rolling_chat.tui.controllers.meter import Meter
    from rolling_chat.tui.controllers.user_status import UserStatusController
    from rolling_chat.tui.state.screen_state import ScreenState
    from rolling_chat.tui.widgets.keys import Moment
    from rolling_chat.tui.widgets.prompt_box import PromptBox
    from rolling_chat.tui.widgets.transcript import Transcript

Painted = TypeVar("Painted", bound=Widget)

_FRAME = 1 / 25
_BETWEEN = 0.6 * _FRAME  # minimum seconds from the start of one paint to the next
_ROWS_EVERY = 0.12  # seconds between two paints of the rows below the transcript while a turn runs
_PAINT_SHARE = 3  # slow paints take at most one third of the time...
_LONGEST = (
    0.045  # ...but streamed text never waits longer than this, in seconds, after the last paint's start
)


class Canvas(Protocol):
    """The part of the screen that painting uses."""

    chat: Chat
    state: ScreenState
    finding: FindController

    @property
    def size(self) -> Size:
        """The size of the terminal."""
        ...

    @property
    def transcript(self) -> Transcript:
        """The widget that shows the conversation."""
        ...

    @property
    def prompt(self) -> PromptBox:
        """The prompt box."""
        ...

    def query_one(self, selector: type[Painted], /) -> Painted:
        """Return the widget of a type; raise NoMatches while the screen is being closed."""
        ...

    def moment(self) -> Moment:
        """Return the state that decides which keys work."""
        ...

    def set_interval(
        self, interval: float, callback: Callable[[], None] | None = None, *, pause: bool = False
    ) -> Timer:
        """Call a function at regular intervals."""
        ...

    def call_later(self, callback: Callable[[], None]) -> bool:
        """Call a function once the messages being processed are done."""
        ...


class Painter:
    """Redraws the screen whenever its state reports a change. `clock` is monotonic, in seconds.

    Streamed text is painted as often as its cost allows; any other change once its handler has finished.
    """

    def __init__(
        self, screen: Canvas, meter: Meter, user_status: UserStatusController, clock: Callable[[], float]
    ) -> None:
        self._screen = screen
        self._meter = meter
        self._user_status = user_status
        self._clock = clock
        self._painted = -1
        self._fated: tuple[PromptReport, int] | None = None
        self._places = MessageIndices()
        self._paint_after = 0.0
        self._rows_after = 0.0
        self._frames: Timer | None = None
        self._is_due = False
        self._cache = ""

    def begin(self) -> None:
        """Start listening to the state; the screen must be mounted."""
        self._frames = self._screen.set_interval(_FRAME, self._frame, pause=True)
        self._screen.state.listener = self._changed

    def _changed(self) -> None:
        if self._keeps_painting(self._clock()) and self._frames is not None:
            self._frames.resume()
        if self._is_due:
            return
        if not self._screen.state.is_streaming:
            self._is_due = True
            self._screen.call_later(self.paint)
        elif self._clock() >= self._paint_after:
            self._is_due = True
            self._screen.call_later(self._paint_streamed)

    def _keeps_painting(self, now: float) -> bool:
        """Return whether to redraw frame by frame."""
        state = self._screen.state
        return state.busy or now < state.quit_until

    def paint(self) -> None:
        """Redraw everything that has changed."""
        self._is_due = False
        with suppress(NoMatches):  # the screen may be closing
            self._paint_transcript()
            self._paint_around()

    def _paint_around(self) -> None:
        """Redraw everything but the transcript's text."""
        screen = self._screen
        with suppress(NoMatches):
            info = screen.chat.session.info
            screen.query_one(Header).show(info.title or "new session", screen.chat.session.model, info.folder)
            screen.prompt.takes_back = bool(screen.chat.waiting)
            screen.prompt.is_busy = screen.state.busy
            screen.query_one(WaitingList).show(screen.chat.waiting)
            self.paint_rows()
            is_summarized = screen.chat.session.summaries.is_worth_saying(self._meter.report)
            screen.query_one(Banner).show(shown=is_summarized)
            self._user_status.follow(self._meter.report, self._meter.usage, busy=screen.state.busy)
            screen.query_one(TodoRows).show(screen.chat.session.todo, screen.size.height)
            self._show_fates(screen.transcript)

    def paint_rows(self) -> None:
        """Redraw the rows below the transcript: status, gauge and keys."""
        now, screen = self._clock(), self._screen
        busy = screen.state.busy
        # a key's message gets the whole row; the draft's price is back afterwards
        hints = () if screen.state.said else self._meter.draft_hints(busy=busy)
        screen.query_one(StatusLine).show(screen.state.status(now), hints, busy=busy, now=now)
        policy = screen.chat.session.permissions.policy
        screen.query_one(Gauge).show(
            self._meter.reading(), self._meter.usage, "" if policy == "ask" else f"mode: {policy}",
            self._meter.cache,
        )  # fmt: skip
        self._cache = self._meter.cache
        self.hint_keys()

    def follow_cache(self) -> None:
        """Redraw the rows when the displayed lifetime of the provider's cache changes."""
        if self._meter.cache != self._cache:
            with suppress(NoMatches):  # the screen may be closing
                self.paint_rows()

    def hint_keys(self) -> None:
        """Redraw the row of key hints."""
        with suppress(NoMatches):  # the screen may be closing
            self._screen.query_one(KeyBar).show(key_hints(self._screen.moment()))

    def _paint_transcript(self) -> None:
        began, transcript = self._clock(), self._screen.transcript
        transcript.show(self._screen.state.items)
        self._painted = self._screen.state.revision
        self._paint_after = began + min(max(_BETWEEN, _PAINT_SHARE * transcript.paint_cost), _LONGEST)
        self._screen.finding.search_again()

    def _show_fates(self, transcript: Transcript) -> None:
        """Show in the transcript each message's fate by the newest report."""
        report, screen = self._meter.report, self._screen
        conversation = screen.chat.session.conversation
        if report is None or not (conversation.is_whole or conversation.is_long):
            return
        if self._fated is not None and self._fated[0] is report and conversation.is_being_read:
            return  # older messages get their fates at once, after the last was read
        # older messages read since then need fates, too
        read = 0 if conversation.is_whole else len(conversation.recent)
        if self._fated is not None and self._fated[0] is report and self._fated[1] == read:
            return
        self._fated, messages = (report, read), conversation.branch
        fates = item_fates(messages, report, self._places.of(messages))
        key, what = screen.moment().keymap.hint("lost")
        transcript.show_fates(replace(fates, rule=f"{fates.rule} · {key} {what}") if fates.rule else fates)

    def _frame(self) -> None:
        """Paint a change that waited for its frame, and from time to time the rows below the transcript."""
        now, screen = self._clock(), self._screen
        still = not self._keeps_painting(now) and screen.state.revision == self._painted
        if still and self._frames is not None:
            self._frames.pause()
        if still:
            self.paint()
            return
        if screen.state.revision != self._painted and now >= self._paint_after:
            self._paint_streamed()
        elif now >= self._rows_after + _FRAME:
            self._paint_rows_at(now)

    def _paint_streamed(self) -> None:
        """Redraw the transcript while a turn runs, and with it the rows below when they are due.

        Together, Textual composes the screen only once.
        """
        self._is_due = False
        with suppress(NoMatches):  # the screen may be closing
            self._paint_transcript()
        now = self._clock()
        if now >= self._rows_after:
            self._paint_rows_at(now)

    def _paint_rows_at(self, now: float) -> None:
        self._rows_after = now + _ROWS_EVERY
        self._paint_around()
