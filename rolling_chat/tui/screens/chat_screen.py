"""The chat screen: creates the widgets and connects them with the controllers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static, TextArea

from rolling_chat.agent.plan_mode import CARRY_OUT
from rolling_chat.commands import ParsedCommand, custom_lines
from rolling_chat.commands.mode import next_policy, policy_line
from rolling_chat.gc_tuning import collect_when_idle, freeze_loaded_objects
from rolling_chat.mentions import marked
from rolling_chat.tools.background import BACKGROUND, BackgroundCommand
from rolling_chat.tui.controllers.commands import CommandController
from rolling_chat.tui.controllers.drafts import DraftController
from rolling_chat.tui.controllers.following import Following
from rolling_chat.tui.controllers.links import ask_and_open
from rolling_chat.tui.controllers.meter import Meter
from rolling_chat.tui.controllers.painting import Painter
from rolling_chat.tui.controllers.question_slot import Asking
from rolling_chat.tui.controllers.turn_controller import TurnController
from rolling_chat.tui.controllers.user_status import UserStatusController
from rolling_chat.tui.screens.composing import CroppedCompositor
from rolling_chat.tui.screens.reader import ReaderScreen
from rolling_chat.tui.state.screen_state import ScreenState
from rolling_chat.tui.transcript.render import warm_up
from rolling_chat.tui.widgets.banner import Banner
from rolling_chat.tui.widgets.completion import Completion
from rolling_chat.tui.widgets.find import FindBar
from rolling_chat.tui.widgets.frame import PromptFrame
from rolling_chat.tui.widgets.gauge import Gauge
from rolling_chat.tui.widgets.header import Header
from rolling_chat.tui.widgets.keys import KeyBar, Moment, bindings_of
from rolling_chat.tui.widgets.prompt_box import PromptBox
from rolling_chat.tui.widgets.question import Question
from rolling_chat.tui.widgets.search_line import SearchLine
from rolling_chat.tui.widgets.status import StatusLine, UserStatus
from rolling_chat.tui.widgets.todo_rows import TodoRows
from rolling_chat.tui.widgets.transcript import Transcript
from rolling_chat.tui.widgets.waiting import WaitingList

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from rolling_chat.agent import Chat
    from rolling_chat.settings.paths import Paths
    from rolling_chat.tui.controllers.commands import Shell

_log = logging.getLogger("rolling_chat.tui")

_FOLLOW_EVERY = 2.0  # seconds between checks of a session that another terminal writes
_CACHE_EVERY = 10.0  # seconds between checks of the provider's cache lifetime
_QUIET = 5.0  # seconds without input after which garbage collection disturbs nobody
_QUIT_TWICE = 2.0  # seconds within which a second ctrl+c quits
_MIN_WIDTH, _MIN_HEIGHT, _LOW_HEIGHT, _SHORT_HEIGHT = 40, 10, 16, 28


class ChatScreen(ReaderScreen):
    """The chat's screen: creates the widgets and passes their events on; a painter draws the state."""

    CSS_PATH = "chat.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("escape", "stop", show=False),
        *bindings_of("chat"),
    ]

    def __init__(
        self,
        app: Shell,
        chat: Chat,
        paths: Paths | None,
        clock: Callable[[], float],
        first_message: str = "",
    ) -> None:
        super().__init__()
        self._compositor = CroppedCompositor()
        self.chat = chat
        self.state = ScreenState()
        self._clock = clock
        self._keymap = app.keymap
        self._first_message = first_message
        self._following = Following(chat, self.state, self)
        self._meter = Meter(chat, self._following.catch_up_in_background)
        self._asking = Asking(self, clock)
        self._turns = TurnController(
            chat, self.state, self._meter, self._asking, self, clock=clock, fault=app.fault
        )
        self._commands = CommandController(app, self, self._following, self._meter, self._turns, paths=paths)
        self.drafts = DraftController(
            self, self._asking, self._turns, self._commands, self._meter, paths=paths
        )
        self._painter = Painter(self, self._meter, UserStatusController(self), clock)
        self._newline_key = "ctrl+j"

    def compose(self) -> ComposeResult:
        """Lay out title, banner, transcript, question, commands, to-dos, status, gauge, box and keys."""
        completion, search = Completion(id="completion"), SearchLine(id="search")
        yield Header(id="header")
        yield Banner(id="banner")
        yield Transcript(id="transcript")
        yield Vertical(id="question-slot")
        yield completion
        yield search
        yield FindBar(id="find")
        yield TodoRows(id="todo")
        yield WaitingList(id="waiting")
        yield StatusLine(id="status")
        yield Gauge(id="gauge")
        yield PromptFrame(self.drafts.make_box(completion, search))
        yield UserStatus(id="user-status")
        yield KeyBar(id="keys")
        yield Static("", id="too-small", markup=False)

    def on_mount(self) -> None:
        """Show the conversation and accept keys; postpone slow work until after the first paint."""
        self.chat.listener.ask = self._turns.ask_permission
        self.chat.listener.ask_attachment = self._turns.ask_attachment
        self.chat.listener.ask_spending = self._turns.ask_spending
        self.chat.listener.on_summary = self.state.summary
        self.chat.listener.on_server = self._server_changed
        BACKGROUND.on_end = self._background_ended
        self._painter.begin()
        self.prompt.focus()
        self._show()
        for line in (*self._keymap.warnings, *custom_lines(self.chat)):
            self.state.notice(line, warning=True)
        self.drafts.tidy()
        self.call_after_refresh(self._after_first_paint)

    def _background_ended(self, command: BackgroundCommand) -> None:
        self.state.notice(f"{command} is over: {command.state}. /processes {command.id} shows its output.")

    def _server_changed(self, line: str) -> None:
        """Show a line about an MCP server, and the new cost of the tools."""
        if line:
            self.state.notice(line, warning=True)
        self._following.mark()
        self.state.changed()

    def open_address(self, address: str) -> None:
        """Ask whether to open an address in a browser, and open it."""
        self.work(partial(ask_and_open, self, address))

    # -- painting

    def load(self) -> None:
        """Show the chat's conversation, scrolled to its end."""
        self._asking.cancel()  # its question was about another session
        self._show()
        self.chat.session.servers.start()
        self._following.catch_up_in_background()

    def _show(self) -> None:
        self._following.load()
        self.drafts.session_opened()
        self.transcript.scroll_to_newest()
        self._painter.paint()

    def moment(self) -> Moment:
        """Return the state that decides which keys work."""
        question = self._asking.question
        harmless = question.harmless if question is not None and not question.has_focus else None
        return Moment(
            busy=self.state.busy,
            waiting=bool(self.chat.waiting),
            drafting=bool(self.prompt.text),
            completing=self.query_one(Completion).shown,
            mentioning=self.prompt.is_mentioning,
            can_carry_on=self.state.can_carry_on and not self.prompt.text,
            has_plan=self.chat.session.has_plan,
            searching=self.prompt.searching,
            finding=self.finding.has_keys,
            is_find_unfocused=self.finding.is_open,
            summarizing=self.chat.session.summaries.is_proposing,
            next_to_paste=self.prompt.is_next_to_paste,
            scrolled_up=not self.transcript.follow,
            newline_key=self._newline_key,
            vim=self.prompt.vim_mode,
            keymap=self._keymap,
            answers=question.hints if question else (),
            escapes=harmless.label.lower() if harmless is not None else "",
            sends_words=self._asking.takes_words,
            reading=self.reading.hints if self.reading.is_on else (),
        )

    @on(Banner.Dismissed)
    def _dismiss_banner(self) -> None:
        self.chat.session.summaries.dismiss()
        self.state.changed()

    # -- for turns (`controllers.turn_controller.Stage`)

    def turn_over(self) -> None:
        """Update the messages' fates after a turn ended."""
        self._following.mark()
        self.state.changed()
        if not self.chat.waiting:  # else the next turn begins
            self.call_attention("the turn is over")

    def call_attention(self, line: str) -> None:
        """Notify a user who is looking elsewhere of `line` about this session."""
        session = self.chat.session
        if cast("Shell", self.app).call_attention(f"{session.info.title or 'new session'}: {line}"):
            session.hooks.notify(line)

    @on(Question.Answered)
    def _answered(self, event: Question.Answered) -> None:
        self._asking.answer(event.question, event.reply)

    @on(Question.WordsWanted)
    def _words_wanted(self) -> None:
        self.take_focus()
        self.state.changed()

    @on(Question.Typed)
    def _typed_elsewhere(self, event: Question.Typed) -> None:
        self.prompt.type_in(event.text)
        self.set_focus(self.default_focus(), scroll_visible=False)

    @on(Question.Erased)
    def _erased_elsewhere(self) -> None:
        self.prompt.action_delete_left()

    # -- the prompt box

    @on(PromptBox.Submitted)
    def _submitted(self, event: PromptBox.Submitted) -> None:
        if event.draft.text.strip():
            self.transcript.scroll_to_newest()
        self.drafts.submitted(event.draft, after_turn=event.after_turn)

    @on(PromptBox.TakeBack)
    def _take_back(self) -> None:
        self.drafts.take_back()

    @on(PromptBox.EditorWanted)
    def _editor_wanted(self) -> None:
        self.work(self.drafts.edit_outside)

    @on(PromptBox.Pasted)
    def _pasted(self, event: PromptBox.Pasted) -> None:
        self.drafts.pasted(event.text)

    @on(PromptBox.Said)
    def _prompt_said(self, event: PromptBox.Said) -> None:
        self.state.notice(event.line)

    @on(PromptBox.NewlineKeySeen)
    def _newline_key_seen(self) -> None:
        self._newline_key = "shift+enter"
        self.state.changed()

    @on(TextArea.Changed, "#prompt")
    def _draft_changed(self) -> None:
        self.state.quit_until = 0.0
        self.drafts.changed()
        if self._asking.question is not None:
            self.take_focus()
        self.state.changed()

    @on(TextArea.SelectionChanged, "#prompt")
    @on(Completion.Toggled)
    def _keys_changed(self) -> None:
        self.fit_question()
        self.state.changed()

    # -- keys

    def action_interrupt(self) -> None:
        """Copy the selection, else clear the draft, else stop the turn; pressed twice, quit."""
        if self.prompt.searching:
            self.prompt.cancel_search()
        elif self.reading.copies():
            pass
        elif not self.prompt.selected_text and self.copies_later(self.app.copy_to_clipboard):
            self.clear_selection()
        elif selected := self.prompt.selected_text or self.get_selected_text():
            self.app.copy_to_clipboard(selected)
            self.clear_selection()
        elif self.finding.is_open:
            self.finding.close()
        elif self.prompt.text:
            self.prompt.wipe()
        elif self._clock() < self.state.quit_until:
            self.app.call_later(self.app.action_quit)
        else:
            self._turns.stop()
            self.state.quit_until = self._clock() + _QUIT_TWICE
        self.state.changed()

    def action_stop(self) -> None:
        """Close the find bar, cancel the command or question, stop running work, or hide the banner."""
        if self.finding.is_open:
            self.finding.close()
            return
        if self._commands.cancel():
            return
        if self._asking.question is not None:
            self._asking.question.cancel()
            return
        if not self.state.busy:
            if self.chat.session.summaries.stop_proposing():
                return
            if self.query_one(Banner).shown:
                self._dismiss_banner()
        self._turns.stop()
        self.state.changed()

    def action_move(self, how: str, step: int) -> None:
        """Scroll a long question that has the focus, else the transcript."""
        question = self._asking.question
        if question is None or how != "pages" or not question.scroll_pages(step):
            super().action_move(how, step)

    def action_answer(self) -> None:
        """Focus the open question, even above a draft; else the transcript being read or the prompt box."""
        beside = self.transcript if self.reading.is_on else self.prompt
        self.set_focus(self._asking.question or beside, scroll_visible=False)

    def action_details(self) -> None:
        """Unfold or fold thinking and tool results."""
        transcript = self.transcript
        transcript.set_details(not transcript.details)

    def action_mode(self) -> None:
        """Switch to the next permission policy: ask, edits, plan, read-only, then ask again."""
        permissions = self.chat.session.permissions
        permissions.policy = next_policy(permissions.policy)
        self.state.notice(policy_line(permissions.policy))

    def action_carry_out(self) -> None:
        """Leave plan mode for edits, and let the model carry out its plan."""
        session = self.chat.session
        if self.state.busy or not session.has_plan:
            self.state.notice("There is no plan to carry out: /mode plan asks for one.")
            return
        session.permissions.policy = "edits"
        self.state.notice(policy_line("edits"))
        self.work(self._turns.say(CARRY_OUT))

    def action_paste_picture(self) -> None:
        """Attach the picture on the clipboard."""
        self.work(partial(self._commands.run, ParsedCommand("paste", "")))

    def action_help(self) -> None:
        """Show the keys and the commands."""
        self._commands.show_help()

    def action_context(self) -> None:
        """Show the next request, message by message."""
        self.work(partial(self._commands.run, ParsedCommand("context", "")))

    def action_lost(self) -> None:
        """Show what was lost with the messages dropped from the prompt."""
        self.work(partial(self._commands.run, ParsedCommand("lost", "")))

    async def settle(self) -> None:
        """Save the draft, stop the running work and wait for its end, before the program quits."""
        await self.drafts.settle()
        await self._turns.settle()
        await self.chat.session.summaries.stop()

    # -- the rest

    def on_resize(self, event: events.Resize) -> None:
        """Fit the layout to the terminal's size, or show that it is too small to use."""
        width, height = event.size
        too_small = width < _MIN_WIDTH or height < _MIN_HEIGHT
        if self.has_class("-too-small") and not too_small:
            self.call_after_refresh(self.take_focus)  # a hidden widget lost it
        self.set_class(too_small, "-too-small")
        self.set_class(height < _LOW_HEIGHT, "-low")
        self.set_class(height < _SHORT_HEIGHT, "-short")
        self.query_one("#too-small", Static).update(
            f"The terminal is too small:\n{width} × {height}; {_MIN_WIDTH} × {_MIN_HEIGHT} is the minimum."
        )
        self.fit_question()
        self.state.changed()  # the to-do list folds on a low screen

    def question_slot(self) -> Widget:
        """Return the container of the question."""
        return self.query_one("#question-slot")

    def fit_question(self) -> None:
        """Fit the question's height to the rows available."""
        question = self._asking.question
        if question is not None:
            question.fit(self.size.height, crowded=self.query_one(Completion).shown)

    def take_focus(self) -> None:
        """Focus the widget that should have the keys now, unless the terminal is too small to show it."""
        if not self.has_class("-too-small"):
            super().take_focus()

    def default_focus(self) -> Widget:
        """Return the default focus: the open question unless a draft is being typed; else the prompt box."""
        question = self._asking.question
        is_written = self.prompt.text or self.prompt.searching or self._asking.takes_words
        return question if question is not None and not is_written else self.prompt

    @on(Transcript.OlderWanted)
    def _older_wanted(self, event: Transcript.OlderWanted) -> None:
        self._following.read_older_in_background(whole=event.whole)

    @on(Question.HintsChanged)
    @on(Transcript.Moved)
    def _repaint(self) -> None:
        self.state.changed()

    def _after_first_paint(self) -> None:
        self.prompt.painted_at = Message().time
        self.set_interval(_FOLLOW_EVERY, self._following.look)
        self.set_interval(_QUIET, self._collect_when_quiet)
        self.set_interval(_CACHE_EVERY, self._painter.follow_cache)
        self.state.changed()
        self.work(self._warm_up)

    def _collect_when_quiet(self) -> None:
        if not self.state.busy and self._clock() - cast("Shell", self.app).touched_at > _QUIET:
            collect_when_idle()

    async def _warm_up(self) -> None:
        """Load what the gauge and the first request need; only log a failure, as that request reports it."""
        try:
            await self.chat.warm_counting()
            await self._following.catch_up()
            self._meter.begin()
            self.drafts.count()
            if line := await self.chat.session.ask_server():
                self.state.notice(line)
            await self.chat.session.count_beginning()
            self.state.changed()
            self.chat.session.servers.start()
            if self._first_message.strip():
                self.work(self._turns.say(marked(self._first_message)))
            await asyncio.to_thread(warm_up)
            freeze_loaded_objects()
            await self.chat.warm_up()
            freeze_loaded_objects()
            self.chat.session.hooks.begin()
            await self.chat.remove_leftovers()
            await self.chat.saved.read()
        except Exception as error:  # the user asked for nothing yet: do not end the program
            _log.warning("warming up failed", exc_info=error)
