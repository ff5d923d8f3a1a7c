"""The chat: runs turns in one open session, and switches between sessions."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.hooks.session_hooks import Ruling
from rolling_chat.agent.mentioned_files import GivenText
from rolling_chat.agent.model_list import ListedModel, list_all_models
from rolling_chat.agent.models import call_address, pick_model
from rolling_chat.agent.next_session import NextSession
from rolling_chat.agent.retention import delete_old_sessions
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.saved_sessions import SavedSessions
from rolling_chat.agent.session import Session
from rolling_chat.agent.telemetry import MISSING, TurnTrace, is_installed
from rolling_chat.agent.turn.attaching import Insertion
from rolling_chat.agent.turn.running import EventQueue, RunningTurn
from rolling_chat.agent.turn.waiting import WaitingMessages
from rolling_chat.context import count_tokens
from rolling_chat.events import AskPermission, Event, Listener, Noticed, Outcome, TurnEnded, TurnStarted
from rolling_chat.messages import Ending, JsonObject, Message, Usage
from rolling_chat.providers.background_thread import in_background
from rolling_chat.providers.model_ref import ModelRef
from rolling_chat.sessions.records import SearchHit, SessionInfo
from rolling_chat.settings.project_files import INSTRUCTION_NAMES
from rolling_chat.settings.schema import Settings
from rolling_chat.settings.trust import FolderTrust
from rolling_chat.tools.background import BACKGROUND
from rolling_chat.tools.leftover_files import remove_leftovers
from rolling_chat.tools.registry import choose_tools
from rolling_chat.tools.sandbox.sandbox import NEWCOMERS, told_of_moved

log = logging.getLogger("rolling_chat.agent.chat")

Result = TypeVar("Result")

_MAX_CHANGES = 2_000  # the newest file changes, near which temporary files are searched

GO_ON = "Continue exactly where you stopped."


class Chat:
    """Runs turns in the open session, `session`, and replaces it with another.

    Everything that belongs to one session is in `session`; `listener` serves all sessions. `waiting` are
    messages that the user writes while a turn runs, to be sent in the turn or after it. `saved` has all
    sessions of the store.
    """

    def __init__(self, runtime: Runtime, session: Session, listener: Listener) -> None:
        self._runtime = runtime
        self.session = session
        self.listener = listener
        self.waiting = WaitingMessages()
        self.saved = SavedSessions(runtime)
        self._turn: RunningTurn | None = None
        self._asking_hooks: asyncio.Task[Ruling] | None = None
        self._closed = False
        self._unread_line = runtime.trust.line  # already shown as a notice of the session

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

        An empty `model` means the session's, or else that of settings and environment. `address` is that of
        its server, or "default" for the provider's own; empty means the session's, or else that of settings
        and environment. If `rolling` is None, the session or the setting decides. Raises ChatError if a
        model, a tool or the store fails, and without `allow_fallback` if no model was chosen.
        """
        settings, listener = runtime.settings, Listener(ask)
        with in_words():
            choice = pick_model(runtime, model, session, address=address, allow_fallback=allow_fallback)
            is_rolling = settings.context.enabled if rolling is None else rolling
            if session is None:
                # check this before creating a session, which would remain after an error
                choose_tools(settings.agent.tools)
                session = runtime.store.create_session(
                    folder=str(runtime.folder),
                    model=choice.model,
                    api_base=choice.address,
                    rolling=is_rolling,
                )
            elif rolling is None:
                is_rolling = session.rolling
            opened = Session(
                runtime, session, listener,
                model=choice.model, address=choice.address, rolling=is_rolling, model_line=choice.line,
            )  # fmt: skip
            opened.notices.extend(settings.warnings)
            if settings.telemetry.endpoint and not is_installed():
                opened.notices.append(MISSING)
            files, now = runtime.paths.attachments_dir, runtime.clock()
            deleted = delete_old_sessions(
                runtime.store, settings.sessions.keep_days, now, files, spare=session.id
            )
        if deleted:
            opened.notices.append(deleted)
        return cls(runtime, opened, listener)

    @property
    def busy(self) -> bool:
        """Whether a turn is running; False by the time its TurnEnded is delivered."""
        return self._turn is not None

    @property
    def trouble(self) -> str:
        """Why the session store does not answer just now, in one line; empty while it does."""
        return self._runtime.store.trouble

    @property
    def settings(self) -> Settings:
        """The active settings."""
        return self._runtime.settings

    @property
    def trust(self) -> FolderTrust:
        """The user's trust in the folder, which decides which of its own files are read."""
        return self._runtime.trust

    @property
    def own_instructions(self) -> Path:
        """The user's own instruction file, which need not exist."""
        return self._runtime.paths.instructions_file

    @property
    def folder_instructions(self) -> Path:
        """The instruction file of the working folder, which need not exist."""
        return self._runtime.trust.folder / INSTRUCTION_NAMES[0]

    @property
    def usage(self) -> Usage:
        """The usage that providers reported for the whole session, including the running turn."""
        past = self.session.state.usage
        return past + self._turn.usage if self._turn is not None else past

    def send(
        self, text: str, inserted: Sequence[Insertion] = (), given: Sequence[GivenText] = ()
    ) -> AsyncGenerator[Event]:
        """Send `text` as a user message and run the turn, yielding its events.

        The files that it mentions with marks (`mentions.py`) are attached, as are the texts that commands
        `inserted` and those `given` with it. Raises ChatError if a turn runs or the text is blank, and with
        the first event if another process has the session open. The events end with TurnEnded. Closing the
        generator stops the turn.
        """
        if not text.strip():
            raise ChatError("There is nothing to send: the message is empty.")
        self.session.require_idle()
        return self._run(text, inserted, given)

    def carry_on(self) -> AsyncGenerator[Event]:
        """Continue a turn that ended early, or repeat its request if that was too long or failed.

        Raises ChatError if a turn runs, and with the first event if there is nothing to continue.
        """
        self.session.require_idle()
        return self._run(None, goes_on=True)

    def stop(self) -> None:
        """Stop the running turn; it ends with TurnEnded(CANCELLED) and a well-formed conversation.

        A message whose hooks are still running is not sent.
        """
        if self._asking_hooks is not None:
            self._asking_hooks.cancel()
        if self._turn is not None:
            self._turn.task.cancel()

    def start_new(self) -> None:
        """Close this session and open a new one with the same model."""
        self.session.gate.require_idle()
        self._enter(self.next.new())

    def resume(self, id_start: str) -> None:
        """Close this session and open the one whose id begins with the given text."""
        self.session.gate.require_idle()
        self._enter(self.next.saved(id_start))

    def fork(self) -> None:
        """Copy this session and continue in the copy; the original does not change."""
        self.session.gate.require_idle()
        self._enter(self.next.copy())

    async def enter(self, opened: Callable[[], Session]) -> None:
        """Continue in the session that `opened` opens, off the event loop if the store is remote."""
        before = self.session
        before.gate.require_idle()
        session = await self.apart(opened)
        if session is before:
            return
        if not before.gate.idle.is_set():  # a message was sent meanwhile
            await session.leave()
            before.gate.require_idle()
        self.session = session
        await before.leave()

    @property
    def next(self) -> NextSession:
        """What opens the session to go on in, which `enter` then enters."""
        return NextSession(self._runtime, self.listener, self.session)

    def _enter(self, session: Session) -> None:
        """Continue in another session, and close the current one."""
        before, self.session = self.session, session
        if before is not session:
            before.close()
            log.info("left session %s for %s", before.info.id, session.info.id)

    async def apart(self, work: Callable[[], Result]) -> Result:
        """Do work that calls the store for the current session, off the event loop if that is remote."""
        return await self.session.conversation.queue.run(work)

    def search(self, words: str, stop: threading.Event | None = None) -> list[SearchHit]:
        """Search the messages of all sessions, best hits first, until `stop` is set; thread-safe."""
        with in_words():
            return self._runtime.store.search(words, stop=stop)

    def list_models(self) -> Sequence[ListedModel]:
        """Return the models to choose from, reachable ones first; call it from a thread.

        It asks the servers of this machine, which takes a fraction of a second.
        """
        # this imports an HTTP client, which is not needed before the first paint
        from rolling_chat.providers.local_servers import find_servers  # noqa: PLC0415

        runtime = self._runtime
        servers = find_servers(runtime.environ)
        return list_all_models(runtime.settings, runtime.environ, runtime.catalog, servers)

    def model_names(self) -> Sequence[str]:
        """Return the names of the models that settings, keys and the demo offer."""
        runtime = self._runtime
        listed = list_all_models(runtime.settings, runtime.environ, runtime.catalog, ())
        return [one.name for one in listed if one.reached_by]

    async def warm_counting(self) -> None:
        """Load what the first report needs, in a thread; it takes 0.3 seconds the first time."""
        await in_background(partial(_load_counting, self.session.model))

    async def user_status(self, facts: JsonObject) -> str:
        """Run the user's status command with `facts` on its input; return its line."""
        # this imports modules that are not needed before the first paint
        from rolling_chat.agent.status_command import run_status_command  # noqa: PLC0415

        return await run_status_command(self._runtime, facts)

    async def remove_leftovers(self) -> None:
        """Remove temporary files that a killed process left beside changed files of this folder."""
        await in_background(partial(_remove_leftovers, self._runtime))

    async def warm_up(self) -> None:
        """Import what the first request needs, in a thread; it takes some 3 seconds if litellm is needed."""
        session = self.session
        address = call_address(self._runtime, session.model, session.address)
        await self._runtime.provider.warm_up(session.model, address)

    async def disconnect(self) -> None:
        """Close the connections to the model's and all other servers, before the event loop ends."""
        await self.session.summaries.stop()
        await self.session.servers.stop()
        await self.session.hooks.stop()
        await in_background(self._runtime.close_telemetry)
        await self._runtime.provider.close()

    def close(self) -> None:
        """Stop a running turn, and close the session."""
        self.stop()
        self.session.summaries.cancel()
        if not self._closed:
            self._closed = True
            self._runtime.attachments.close()
            self.session.close()

    def dispose(self) -> None:
        """Close the session and its store, in a process that continues without them or ends.

        A store that is out of reach is not waited for.
        """
        self._runtime.store.hurry(for_good=True)
        self.close()
        self._runtime.store.close()

    async def _run(
        self,
        text: str | None,
        inserted: Sequence[Insertion] = (),
        given: Sequence[GivenText] = (),
        *,
        goes_on: bool = False,
    ) -> AsyncGenerator[Event]:
        """Store the user's message, if any, then run the turn in a task of its own and yield its events.

        With `goes_on` the message depends on how the conversation ends.
        """
        session = self.session
        await session.conversation.queue.run(session.require_sendable)
        with in_words():
            await session.conversation.queue.run(session.fallbacks.begin_turn)
        self._require_open(session)
        if goes_on:
            text = _continuation(session)
        moved = [told_of_moved(path) for path in NEWCOMERS.move_away()]
        session.read_anew()
        news = self._unread_news()
        started, notices = await self._start(text, inserted, given) if text is not None else (None, [])
        events = EventQueue()
        turn = self._turn = RunningTurn(session.turn_loop(events.put, self.waiting), events)
        session.gate.idle.clear()
        session.summarizer.yield_to_turn()
        trace: TurnTrace | None = None
        try:
            if started is not None:
                yield started
            if news:
                yield Noticed(news)
            for line in (*moved, *session.take_news(), *notices):
                yield Noticed(line, warning=True)
            trace = await self._tracing(session)
            async for event in turn.events():
                if trace is not None:
                    trace.take(event)
                if isinstance(event, TurnEnded):
                    await session.state.counts.count_long(session.conversation.recent, session.model)
                    await session.conversation.pack_old()
                    await self._end_turn(session, event.outcome)
                yield event
        finally:
            await turn.close()
            if trace is not None:
                trace.end()
            await self._end_turn(session, Outcome.CANCELLED)

    async def _tracing(self, session: Session) -> TurnTrace | None:
        """Return the trace of a turn; None unless the settings name a collector."""
        runtime = self._runtime
        if not runtime.settings.telemetry.endpoint:
            return None
        telemetry = await in_background(lambda: runtime.telemetry)  # its import takes a moment
        return None if telemetry is None else telemetry.turn(session.info.id)

    def _unread_news(self) -> str:
        """Return the line about files of the folder that are not read, if it has changed; else empty."""
        before, self._unread_line = self._unread_line, self._runtime.trust.line
        return self._unread_line if self._unread_line != before else ""

    async def _start(
        self, text: str, inserted: Sequence[Insertion], given: Sequence[GivenText]
    ) -> tuple[TurnStarted, list[str]]:
        """Store a user message with its attachments; return its event, and notices to show."""
        session = self.session
        outgoing = await session.mentions.outgoing(text, inserted, given)
        ruling = await self._ask_hooks(session, outgoing.text)
        self._require_open(session)
        session.require_sendable()
        with in_words():
            news = (session.plan_mode.note, BACKGROUND.take_news(session.info.id), ruling.context)
            note = "\n\n".join(filter(None, (*news, session.room.line_with(Message("user", outgoing.text)))))
            add = partial(
                session.conversation.add_user, outgoing.text, note, outgoing.attachments, outgoing.files
            )
            session.gate.idle.clear()  # nobody moves the branch while it is stored
            try:
                stored = await session.conversation.queue.run(add)
            except BaseException:
                session.gate.idle.set()
                raise
        return TurnStarted(stored), [*ruling.lines, *outgoing.notices]

    def _require_open(self, session: Session) -> None:
        if self.session is not session:
            raise ChatError("Not sent: another session was opened.")

    async def _ask_hooks(self, session: Session, text: str) -> Ruling:
        """Ask the hooks about a message. Raises ChatError, and does not send it, if `stop` ends them."""
        if not session.hooks.asks_about_messages:
            return Ruling()
        self._asking_hooks = asyncio.create_task(session.hooks.before_message(text))
        try:
            return await self._asking_hooks
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise ChatError("Not sent: its hooks were stopped.") from None
        finally:
            self._asking_hooks = None

    async def _end_turn(self, session: Session, outcome: Outcome) -> None:
        turn, self._turn = self._turn, None
        if turn is None:
            return
        session.state.spend(turn.usage)
        await session.conversation.queue.run(session.state.read_info)
        session.gate.idle.set()
        if outcome in (Outcome.DONE, Outcome.CUT):
            session.summaries.begin_due()


def _continuation(session: Session) -> str | None:
    """Return the message that makes the model continue; None if it only has to answer the last message."""
    recent = session.conversation.recent
    last = recent[-1] if recent else None
    if last is None or (last.role == "assistant" and last.ending is Ending.COMPLETE):
        raise ChatError("There is nothing to go on with: the last answer is complete.")
    return GO_ON if last.role == "assistant" else None


def _load_counting(model: str) -> None:
    """Load the encoding of a model, and the module that asks its provider for counts or is the demo."""
    count_tokens("warm", model)
    is_demo = ModelRef.parse(model).is_demo
    import_module(f"rolling_chat.providers.{'offline.offline_provider' if is_demo else 'exact_counts'}")


def _remove_leftovers(runtime: Runtime) -> None:
    root = runtime.folder.resolve()
    paths = map(Path, runtime.store.kept_files.newest_paths(_MAX_CHANGES))
    folders = {path.parent for path in paths if path.parent.is_relative_to(root)}
    if removed := remove_leftovers(folders, root):
        log.info("removed %s temporary files that were left behind", removed)
