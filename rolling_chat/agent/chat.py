"""Chat: one open session, and all that may be done with it."""

from __future__ import annotations

import logging
import shlex
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from rolling_chat.agent.attachments import Attachments, break_long_lines
from rolling_chat.agent.context_settings import Overrides
from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.exporting import export_session, session_as_markdown
from rolling_chat.agent.files import FileState, file_states
from rolling_chat.agent.history import History, SaidTurn
from rolling_chat.agent.memory.pins import Pinning
from rolling_chat.agent.memory.recall import BranchMemory
from rolling_chat.agent.memory.summaries import Summaries
from rolling_chat.agent.models import known_addresses, model_warnings, pick_model, reachable_models
from rolling_chat.agent.permissions import Permissions
from rolling_chat.agent.request.counting import count_long
from rolling_chat.agent.request.preview import RequestPreview
from rolling_chat.agent.request.pricing import Prices, StreamedReply
from rolling_chat.agent.retention import delete_old_sessions
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session import OpenSession
from rolling_chat.agent.turn.loop import AgentLoop
from rolling_chat.agent.turn.oversized import (
    LargeMessage,
    Obstacle,
    as_head_and_tail,
    as_opening,
    find_obstacle,
    note_on_file,
)
from rolling_chat.agent.turn.running import EventQueue, RunningTurn
from rolling_chat.agent.turn.tool_calls import CallRunner
from rolling_chat.context import PromptReport, count_tokens
from rolling_chat.context.tokens import TokenEstimator, estimator_for
from rolling_chat.events import AskPermission, Emit, Event, Outcome, TurnEnded, TurnStarted
from rolling_chat.messages import Ending, Message, Usage
from rolling_chat.permissions.rules import PermissionRule
from rolling_chat.providers.background import in_background
from rolling_chat.providers.discovery import ModelChoice
from rolling_chat.redaction import secrets_in, without_secrets
from rolling_chat.sessions.records import LeftBranch, SearchHit, SessionInfo
from rolling_chat.tools import Tool, ToolContext, all_tools, choose_tools
from rolling_chat.tools.read_file import READ_FILE

log = logging.getLogger("rolling_chat.agent.chat")

GO_ON = "Continue exactly where you stopped."
_BUSY = "The model is still answering: Esc stops it."


class Chat:
    """One open session: the only door for the screen, the commands and `-p`.

    Of a long session the newest messages are there at once (`recent`); `on_older` is told of what
    is read above them later. A session that another process has open is opened to follow: `holder`
    says who has it, `send` raises, `refresh` reads what the other wrote, `fork` makes a copy that is
    ours. `summaries` are made in the background after a turn.
    """

    def __init__(
        self,
        runtime: Runtime,
        info: SessionInfo,
        choice: ModelChoice,
        rolling: bool,
        tools: Sequence[Tool],
    ) -> None:
        self._runtime = runtime
        self._model_line = choice.line
        self._permissions = Permissions.of(runtime.settings, [tool.name for tool in all_tools()])
        self._tools = tools
        self._turn: RunningTurn | None = None
        self._closed = False
        self.on_older: Callable[[Sequence[Message]], None] | None = None
        self._session = self._enter(info, choice.model, choice.address, rolling)
        self._upcoming = RequestPreview(lambda: self._session)
        self.summaries = Summaries(runtime, lambda: self._session)
        self._switches = Overrides(runtime, lambda: self._session)
        self._moves = History(runtime, lambda: self._session)
        self._pinning = Pinning(lambda: self._session)
        self._attachments = Attachments(runtime.paths.attachments_dir if runtime.save else None)

    @classmethod
    def open(
        cls,
        runtime: Runtime,
        *,
        model: str = "",
        address: str = "",
        allow_fallback: bool = True,
        session: SessionInfo | None = None,
        rolling: bool | None = None,
        ask: AskPermission | None = None,
    ) -> Chat:
        """Open `session`, or a new one.

        `model` empty: the session's, else the one of settings and environment. `address` is that of its
        server, "default" for the provider's own; empty: the session's, else as settings and environment
        say. `rolling` None: the session's, else the setting. Raises ChatError where a model, a tool or the
        store says no, and without `allow_fallback` where no one chose a model.
        """
        with in_words():
            choice = pick_model(runtime, model, session, address=address, allow_fallback=allow_fallback)
            tools = choose_tools(runtime.settings.agent.tools)
            is_rolling = runtime.settings.context.enabled if rolling is None else rolling
            if session is None:
                session = runtime.store.create_session(
                    folder=str(runtime.folder),
                    model=choice.model,
                    api_base=choice.address,
                    rolling=is_rolling,
                )
            elif rolling is None:
                is_rolling = session.rolling
            chat = cls(runtime, session, choice, is_rolling, tools)
            chat._session.notices.extend(runtime.settings.warnings)
            days, now = runtime.settings.sessions.keep_days, runtime.clock()
            files = runtime.paths.attachments_dir
            if deleted := delete_old_sessions(runtime.store, days, now, files, spare=session.id):
                chat._session.notices.append(deleted)
        chat.ask = ask
        return chat

    @property
    def info(self) -> SessionInfo:
        """The session as lists show it, up to date."""
        return self._session.info

    @property
    def messages(self) -> Sequence[Message]:
        """The current branch, root first; a reply that is being streamed is not in it yet.

        The whole of it: what was not read yet is read now, which takes a while; `ready` waits for it
        off the event loop. Raises ChatError.
        """
        with in_words():
            return self._session.conversation.messages

    @property
    def recent(self) -> Sequence[Message]:
        """The newest of the current branch: what was read of it so far, and some of it always is."""
        return self._session.conversation.recent

    @property
    def is_whole(self) -> bool:
        """Was all of the branch read?"""
        return self._session.conversation.is_whole

    @property
    def model(self) -> str:
        """The model that answers."""
        return self._session.planner.model

    @property
    def address(self) -> str | None:
        """The address of the model's server: empty for the provider's own, None where it is not known."""
        return self._session.planner.address

    @property
    def known_addresses(self) -> Mapping[str, str]:
        """The addresses that the model may have, as `set_model` takes them, each with where that is."""
        return known_addresses(self._runtime, self.model)

    @property
    def model_warnings(self) -> Sequence[str]:
        """A line for each thing that the model lacks: a key, a known window."""
        return tuple(model_warnings(self._runtime, self.model, self.address))

    @property
    def model_line(self) -> str:
        """One line: which model, where it came from, how to change it."""
        return self._model_line

    @property
    def rolling(self) -> bool:
        """Whether rolling context is on."""
        return self._session.planner.rolling

    @property
    def busy(self) -> bool:
        """Whether a turn runs; no longer when its TurnEnded is handed out."""
        return self._turn is not None

    @property
    def holder(self) -> str:
        """Who else has the session open, in words; empty when it is ours."""
        return self._session.held_by

    @property
    def notices(self) -> Sequence[str]:
        """Lines to show when the session is opened."""
        return self._session.notices

    @property
    def ask(self) -> AskPermission | None:
        """Whom to ask for permission; None refuses what needs it."""
        return self._permissions.ask

    @ask.setter
    def ask(self, ask: AskPermission | None) -> None:
        self._permissions.ask = ask

    @property
    def permissions(self) -> Permissions:
        """The permission rules of the settings and of this session."""
        return self._permissions

    def keep_permission(self, rule: PermissionRule) -> None:
        """Move a rule of this session into the user's settings. Raises ChatError."""
        with in_words():
            self._permissions.keep(rule, self._runtime.paths)

    @property
    def usage(self) -> Usage:
        """What the providers reported of the whole session, the turn that runs included."""
        past = self._session.usage
        return past + self._turn.usage if self._turn is not None else past

    @property
    def resume_command(self) -> str:
        """The command that comes back to this session; empty when it is not kept."""
        if not self._runtime.save:
            return ""
        where = f" --api-base {shlex.quote(self.address)}" if self.address else ""
        return f"rolling-chat --resume {self.info.id}{where}"

    def report(self) -> PromptReport:
        """The report of the next request, kept until the conversation changes; of one too long, too."""
        with in_words():
            return self._upcoming.report()

    @property
    def is_ready(self) -> bool:
        """Can the report be had at once: is the branch whole, and no report being made?"""
        return self._upcoming.is_ready

    @property
    def foresees_at_once(self) -> bool:
        """Can the report of another request than the next be had at once?"""
        return self._session.planner.is_quick(self.messages)

    async def warm_report(self) -> None:
        """Read the rest of the branch and make its report, off the event loop. Raises ChatError."""
        with in_words():
            await self._upcoming.warm()

    async def ready(self) -> None:
        """Wait until the branch is whole, and for its report where one is being made. Raises ChatError."""
        with in_words():
            await self._upcoming.ready()

    def count_draft(self, text: str) -> int:
        """What `text` would add to the next request, in tokens."""
        return self._prices.of(Message("user", text)) if text else 0

    def report_with(self, draft: str) -> PromptReport:
        """The report of the next request, were `draft` said before it; nothing is changed."""
        return self._session.planner.preview([*self.messages, Message("user", draft)])

    def follow_reply(self, reply_id: str) -> StreamedReply:
        """What counts the reply `reply_id` while it comes in, by its events."""
        return self._prices.follow(reply_id)

    def send(self, text: str) -> AsyncGenerator[Event]:
        """Say `text` and run the turn. Raises ChatError when busy, held elsewhere or blank.

        The events end with TurnEnded. Whoever stops listening stops the turn.
        """
        if not text.strip():
            raise ChatError("There is nothing to send: the message is empty.")
        self._may_run()
        return self._run(text)

    def carry_on(self) -> AsyncGenerator[Event]:
        """Go on with the turn that ended early: sent again when it was full or failed, else continued.

        Raises ChatError when there is nothing to go on with.
        """
        self._may_run()
        last = self.recent[-1] if self.recent else None
        if last is None or (last.role == "assistant" and last.ending is Ending.COMPLETE):
            raise ChatError("There is nothing to go on with: the last answer is complete.")
        return self._run(GO_ON if last.role == "assistant" else None)

    def stop(self) -> None:
        """Stop the turn that runs; it ends with TurnEnded(CANCELLED), the conversation in order."""
        if self._turn is not None:
            self._turn.stop()

    def set_rolling(self, on: bool) -> str:
        """Switch rolling context for this session and for new ones; the next request is planned by it.

        The plan is laid aside when it is switched off, and taken up again when it is switched on. Returns
        a line where the choice could not be saved for new sessions, else an empty text.
        """
        return self._switches.set_rolling(on)

    def set_context(self, key: str, value: str) -> str:
        """Set one key of `[context]` for as long as this process runs; returns a line that says so.

        `enabled` is the switch, and saved as `set_rolling` does. `value` is as a person types it. What the
        settings now leave room for comes back. Raises ChatError for a key that there is not, or a value
        that it does not take.
        """
        return self._switches.set_context(key, value)

    async def preview(self, settings: Mapping[str, str] | None = None) -> PromptReport:
        """The report of the next request if rolling context were on, under these settings as typed.

        Nothing is changed; made off the event loop. Raises ChatError as `set_context` does.
        """
        return await in_background(partial(self._switches.preview, settings))

    async def find_obstacle(self) -> Obstacle:
        """Find what was in the way of a turn that ended because its request did not fit. Raises ChatError."""
        report = self.report()
        rolled = report if self.rolling else await self.preview()
        can_read = any(tool.name == READ_FILE for tool in self._session.planner.tools)
        return find_obstacle(report, rolled, can_read=can_read)

    async def keep_as_file(self, large: LargeMessage, *, head_and_tail: bool) -> str:
        """Take back a message that is too large; all of it is kept, in the session and as a private file.

        Returns what to send in its place: its head and tail or its first line, and the name of the file.
        Raises ChatError, and the message stays, where it is not the newest or the file cannot be written.
        """
        self._may_move()
        message = self.recent[-1] if self.recent else None
        if message is None or message.id != large.id:
            raise ChatError("Not sent: the conversation has moved on.")
        make = partial(self._text_for, large, message.text, self._session, head_and_tail=head_and_tail)
        with in_words():
            text = await in_background(make)
        if self.recent[-1] is not message:
            raise ChatError("Not sent: the conversation has moved on.")
        self.undo()
        return text

    def _text_for(self, large: LargeMessage, whole: str, session: OpenSession, *, head_and_tail: bool) -> str:
        planner, text = session.planner, break_long_lines(whole)
        path = self._attachments.keep(session.info.id, text)
        note = note_on_file(path, text, large, planner.config.max_tool_result_tokens)
        if not head_and_tail:
            return as_opening(whole, note)
        return as_head_and_tail(whole, note, large, self._estimator.count_text)

    def undo_switch(self) -> str:
        """Take back the last change of rolling context or of its settings, and return to the plan before it.

        Returns the line that says what was undone. Raises ChatError when there is nothing.
        """
        return self._switches.undo()

    def set_model(self, model: str, address: str = "") -> str:
        """Let `model` answer from the next request on; returns the line that says so.

        `address` is that of its server, "default" for the provider's own. Without it a model of the same
        provider is asked where this one is.
        """
        self._may_leave()
        here = replace(self.info, model=self.model, api_base=self.address)
        with in_words():
            former = self._session.former_addresses
            picked = pick_model(self._runtime, model, here, address=address, former=former)
            choice = replace(picked, source="/model")
            self._session.use_model(choice.model, choice.address)
        if address:
            self._runtime.api_base = address
        self._model_line = choice.described
        return self._model_line

    def start_new(self) -> None:
        """Leave this session as it is and begin another, with the same model."""
        self._may_leave()
        with in_words():
            info = self._runtime.store.create_session(
                folder=str(self._runtime.folder),
                model=self.model,
                api_base=self.address,
                rolling=self._runtime.settings.context.enabled,
            )
            self._move_to(info, self.model, self.address)

    def resume(self, id_start: str) -> None:
        """Leave this session and open the one whose id begins so."""
        self._may_leave()
        with in_words():
            info = self._runtime.store.session(id_start)
            if info.id == self.info.id:
                return
            model, address, line = self.model, self.address, self._model_line
            if info.model:  # one that was imported names none: who answers here answers there
                choice = pick_model(self._runtime, "", info)
                model, address, line = choice.model, choice.address, choice.line
            self._move_to(info, model, address)
            self._model_line = line

    def fork(self) -> None:
        """Go on in a copy of this session; the session itself stays as it is."""
        self._may_leave()
        self.refresh()  # a copy of what another process has goes where that goes
        with in_words():
            self._move_to(self._runtime.store.fork(self.info.id), self.model, self.address)

    @property
    def pins(self) -> Pinning:
        """What is pinned and excluded here, what it would cost, and the way to change it; also while busy."""
        return self._pinning

    def turns(self) -> Sequence[SaidTurn]:
        """What the person said on this branch, oldest first."""
        return self._moves.turns()

    def undo(self) -> Message:
        """Take back the newest turn: go to before the person's message, which is returned.

        This and the moves below delete nothing. They raise ChatError when busy or held elsewhere,
        and where there is nowhere to go.
        """
        self._may_move()
        return self._moves.undo()

    def redo(self) -> None:
        """Take back the last move, as long as nothing was said since."""
        self._may_move()
        self._moves.redo()

    def rewind(self, message_id: str) -> Message:
        """Go to before a message of this branch, which is returned."""
        self._may_move()
        return self._moves.rewind(message_id)

    def retake(self) -> Message:
        """Go to the person's last message, which is returned; `carry_on` answers it anew."""
        self._may_move()
        return self._moves.retake()

    def branches(self) -> Sequence[LeftBranch]:
        """The branches of this session that were left, the one last written to first."""
        return self._moves.branches()

    def go_to(self, message_id: str) -> bool:
        """Go to the branch of this session with a message in it; whether that is another than this one."""
        self._may_move()
        return self._moves.go_to(message_id)

    def rename(self, title: str) -> None:
        """Give the session a title."""
        title = " ".join(title.split())
        if not title:
            raise ChatError("A title needs at least one character.")
        self._session.update(title=title)

    def refresh(self) -> bool:
        """Read what another process wrote to a session that we follow; whether there was anything.

        Once the other has let go of the session, or died, it is ours.
        """
        with self._naming_the_model():
            return not self.busy and self._session.refresh()

    def sessions(self) -> list[SessionInfo]:
        """All sessions: those of this folder first, the newest first among each."""
        with in_words():
            everything = self._runtime.store.sessions()
        here = str(self._runtime.folder)
        return sorted(everything, key=lambda info: info.folder != here)

    async def files(self) -> list[FileState]:
        """The files that this session's tools read and wrote, and whether they are still the same."""
        with in_words():
            used = self._runtime.store.files(self.info.id)
        return await in_background(partial(file_states, used))

    def search(self, words: str, stop: threading.Event | None = None) -> list[SearchHit]:
        """Find messages of any session by any text, best first, until `stop` is set; from any thread."""
        with in_words():
            return self._runtime.store.search(words, stop=stop)

    def export(self, target: str = "") -> Path:
        """Write the branch to a new file: `target` is its name, or a format; returns the file."""
        with in_words():
            summary = self._runtime.store.summary(self.info.id)
        secrets = secrets_in(self._runtime.environ)
        return export_session(
            self.info, self.messages, target, self._runtime.folder, summary, secrets=secrets
        )

    def as_markdown(self) -> str:
        """The branch as one Markdown document, for people."""
        secrets = secrets_in(self._runtime.environ)
        return session_as_markdown(self.info, self.messages, secrets=secrets)

    def model_names(self) -> Sequence[str]:
        """The models that can be switched to: known, and reachable with the keys there are."""
        return reachable_models(self._runtime)

    async def warm_counting(self) -> None:
        """Load what the first report needs, off the event loop; 0.3 seconds the first time."""
        await in_background(partial(count_tokens, "warm", self.model))

    async def warm_up(self) -> None:
        """Load what the first request needs, off the event loop; some 3 seconds the first time."""
        await self._runtime.provider.warm_up()

    async def disconnect(self) -> None:
        """Close the connections to the model's server, before the event loop ends."""
        await self.summaries.stop()
        await self._runtime.provider.close()

    def close(self) -> None:
        """Let go of the session; one that nothing was said in leaves no trace. Stop a turn first."""
        self.stop()
        self.summaries.cancel()
        if not self._closed:
            self._closed = True
            self._attachments.close()
            self._session.let_go()

    # -- what the doors above share

    @property
    def _prices(self) -> Prices:
        return Prices(self.model, self._estimator)

    @property
    def _estimator(self) -> TokenEstimator:
        choice = self._runtime.settings.context.token_estimator
        return estimator_for(self.model, choice, self._session.planner.measurements.calibration)

    async def _run(self, text: str | None) -> AsyncGenerator[Event]:
        """Store what was said, then run the turn in a task of its own and hand out its events."""
        self._may_run()
        session = self._session
        session.planner.read_instructions()
        if text is not None:
            with in_words():
                said = TurnStarted(session.conversation.add_user(text))
        else:
            said = None
        events = EventQueue()
        turn = self._turn = RunningTurn(self._loop(events.put), events)
        self.summaries.turn_began()
        try:
            if said is not None:
                yield said
            async for event in turn.events():
                if isinstance(event, TurnEnded):
                    await count_long(session.conversation.recent, self.model)
                    await session.conversation.pack_old()
                    self._end_turn(event.outcome)
                yield event
        finally:
            await turn.close()
            self._end_turn()

    def _loop(self, emit: Emit) -> AgentLoop:
        runtime, session = self._runtime, self._session
        planner, config = session.planner, session.planner.config
        tails = frozenset(name for name, end in config.tools.items() if end == "tail")
        memory = BranchMemory.of(session.conversation, planner)
        calls = CallRunner(
            session.conversation, planner.tools, self._permissions,
            ToolContext(runtime.folder, self._commands_environment(), memory, self._is_attached),
            runtime.settings.agent.max_tool_calls, emit, tails,
        )  # fmt: skip
        return AgentLoop(
            session.conversation, planner, self._upcoming.plan, runtime.provider, calls, emit,
            ready=self._server_and_branch, max_iterations=runtime.settings.agent.max_tool_iterations,
            log_file=str(runtime.paths.log_file),
        )  # fmt: skip

    def _is_attached(self, path: str) -> bool:
        return self._attachments.is_named(path, tuple(self.messages))

    async def _server_and_branch(self) -> None:
        """Wait until the server is free for the turn, and the branch is whole."""
        await self.summaries.has_yielded()
        await self._upcoming.whole()

    def _commands_environment(self) -> dict[str, str]:
        runtime = self._runtime
        return without_secrets(runtime.environ, runtime.settings.agent.environment)

    def _end_turn(self, outcome: Outcome = Outcome.CANCELLED) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            self._session.usage += turn.usage
            self._session.read_info()
            self.summaries.turn_ended(done=outcome is Outcome.DONE)

    def _enter(self, info: SessionInfo, model: str, address: str | None, rolling: bool) -> OpenSession:
        """Take up a session: claim it, read it, and mend what a process that died left open."""
        session = OpenSession(
            self._runtime, info, model=model, address=address, rolling=rolling, tools=self._tools
        )
        session.conversation.on_older = self._older_read
        self._permissions.forget()
        return session

    def _older_read(self, older: Sequence[Message]) -> None:
        if self.on_older is not None:
            self.on_older(older)

    def _move_to(self, info: SessionInfo, model: str, address: str | None) -> None:
        """Leave this session for another, once that could be opened."""
        before, self._session = self._session, self._enter(info, model, address, info.rolling)
        self.summaries.leave_session()
        before.conversation.on_older = None
        before.let_go()
        log.info("left session %s for %s", before.info.id, info.id)

    def _may_run(self) -> None:
        self._may_leave()
        with self._naming_the_model():
            self._session.make_ours()
        self._session.require_address()

    @contextmanager
    def _naming_the_model(self) -> Iterator[None]:
        """Write the model's line anew where the session was taken over with another model or address."""
        before = self.model, self.address
        try:
            yield
        finally:
            if (self.model, self.address) != before:
                self._model_line = ModelChoice(self.model, "this session", self.address).line

    def _may_move(self) -> None:
        self._may_leave()
        self.summaries.cancel()

    def _may_leave(self) -> None:
        if self.busy:
            raise ChatError(_BUSY)
