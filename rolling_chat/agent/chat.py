"""Chat: one open session, and all that may be done with it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Unpack

from rolling_chat.agent.approvals import Approvals
from rolling_chat.agent.calls import CallRunner
from rolling_chat.agent.conversation import Conversation
from rolling_chat.agent.files import FileState, file_states
from rolling_chat.agent.loop import AgentLoop
from rolling_chat.agent.memory import BranchMemory
from rolling_chat.agent.models import pick_model, reachable_models
from rolling_chat.agent.prompt import Planner
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.switching import Switch, Wanted, value_of
from rolling_chat.agent.turn import RunningTurn
from rolling_chat.context import ContextPlan, PromptReport, count_tokens
from rolling_chat.events import AskLeave, Event, TurnEnded, TurnStarted
from rolling_chat.messages import Ending, Message, Usage
from rolling_chat.providers.background import in_background
from rolling_chat.providers.discovery import ModelChoice
from rolling_chat.providers.protocol import ProviderError
from rolling_chat.sessions.records import Holder, SessionChanges, SessionInfo, StoreError
from rolling_chat.settings.schema import SettingsError
from rolling_chat.tools import Tool, ToolContext, ToolError, choose_tools

log = logging.getLogger("rolling_chat.agent.chat")

GO_ON = "Continue exactly where you stopped."
_BUSY = "The model is still answering: Esc stops it."
_MESSAGE_FRAMING = 4  # tokens around a message, as OpenAI counts them


class ChatError(Exception):
    """What cannot be done, in one line for the person."""


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """What a store, a provider or a tool says no with, as the one line that it is."""
    try:
        yield
    except (ProviderError, SettingsError, StoreError, ToolError) as error:
        raise ChatError(str(error)) from error


class Chat:
    """One open session: the only door for the screen, the commands and `-p`.

    A session that another process has open is opened to follow: `holder` says who has it, `send`
    raises, `refresh` reads what the other wrote, `fork` makes a copy that is ours.
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
        self._info = info
        self._model_line = choice.line
        self._approvals = Approvals(runtime.settings.agent.approvals)
        self._tools = tools
        self._turn: RunningTurn | None = None
        self._closed = False
        self._report: tuple[object, PromptReport] | None = None
        self._holder: Holder | None = None
        self._switches: list[Switch] = []  # what can be undone, the last one last
        self.notices: list[str] = []  # lines to show when the session is opened
        self._enter(info, choice.model, rolling)

    @classmethod
    def open(
        cls,
        runtime: Runtime,
        *,
        model: str = "",
        session: SessionInfo | None = None,
        rolling: bool | None = None,
        ask: AskLeave | None = None,
    ) -> Chat:
        """Open `session`, or a new one.

        `model` empty: the session's, else the one of settings and environment. `rolling` None: the
        session's, else the setting. Raises ChatError where a model, a tool or the store says no.
        """
        with _in_words():
            choice = pick_model(runtime, model, session)
            tools = choose_tools(runtime.settings.agent.tools)
            is_rolling = runtime.settings.context.enabled if rolling is None else rolling
            if session is None:
                session = runtime.store.create_session(
                    folder=str(runtime.folder), model=choice.model, rolling=is_rolling
                )
            elif rolling is None:
                is_rolling = session.rolling
            chat = cls(runtime, session, choice, is_rolling, tools)
        chat.ask = ask
        return chat

    @property
    def info(self) -> SessionInfo:
        """The session as lists show it, up to date."""
        return self._info

    @property
    def messages(self) -> Sequence[Message]:
        """The current branch, root first; a reply that is being streamed is not in it yet."""
        return self._conversation.messages

    @property
    def model(self) -> str:
        """The model that answers."""
        return self._planner.model

    @property
    def model_line(self) -> str:
        """One line: which model, where it came from, how to change it."""
        return self._model_line

    @property
    def rolling(self) -> bool:
        """Whether rolling context is on."""
        return self._planner.rolling

    @property
    def busy(self) -> bool:
        """Whether a turn runs; no longer when its TurnEnded is handed out."""
        return self._turn is not None

    @property
    def holder(self) -> str:
        """Who else has the session open, in words; empty when it is ours."""
        if self._holder is None:
            return ""
        since = datetime.fromtimestamp(self._holder.since).astimezone()
        return f"open in another terminal (process {self._holder.pid} since {since:%H:%M})"

    @property
    def ask(self) -> AskLeave | None:
        """Whom to ask for leave; None refuses what needs it."""
        return self._approvals.ask

    @ask.setter
    def ask(self, ask: AskLeave | None) -> None:
        self._approvals.ask = ask

    @property
    def usage(self) -> Usage:
        """What the providers reported of the whole session, the turn that runs included."""
        return self._usage + self._turn.usage if self._turn is not None else self._usage

    @property
    def resume_command(self) -> str:
        """The command that comes back to this session; empty when it is not kept."""
        return f"rolling-chat --resume {self._info.id}" if self._runtime.save else ""

    def report(self) -> PromptReport:
        """The report of the next request, kept until the conversation changes; of one too long, too."""
        state = (self._conversation.version, self._planner.revision, self.model, self.rolling, self._info.id)
        if self._report is None or self._report[0] != state:
            self._report = (state, self._planner.preview(self.messages))
        return self._report[1]

    def count_draft(self, text: str) -> int:
        """What `text` would add to the next request, in tokens."""
        return count_tokens(text, self.model) + _MESSAGE_FRAMING if text else 0

    def send(self, text: str) -> AsyncGenerator[Event]:
        """Say `text` and run the turn. Raises ChatError when busy, held elsewhere or blank.

        The events end with TurnEnded. Whoever stops listening stops the turn.
        """
        if not text.strip():
            raise ChatError("There is nothing to send: the message is empty.")
        self._may_run()
        return self._run(text)

    def carry_on(self) -> AsyncGenerator[Event]:
        """Go on with the turn that ended early: sent again when it was full or failed, continued when cut.

        Raises ChatError when there is nothing to go on with.
        """
        self._may_run()
        last = self.messages[-1] if self.messages else None
        if last is None or (last.role == "assistant" and last.ending is Ending.COMPLETE):
            raise ChatError("There is nothing to go on with: the last answer is complete.")
        return self._run(GO_ON if last.role == "assistant" else None)

    def stop(self) -> None:
        """Stop the turn that runs; it ends with TurnEnded(CANCELLED), the conversation in order."""
        if self._turn is not None:
            self._turn.stop()

    def set_rolling(self, on: bool) -> None:
        """Switch rolling context for this session; the next request is planned by it.

        The plan is laid aside when it is switched off, and taken up again when it is switched on.
        """
        self._switch("", replace(self._in_force, rolling=on))

    def set_context(self, key: str, value: str) -> str:
        """Set one key of `[context]` for as long as this process runs; returns a line that says so.

        `value` is as a person types it. What the settings now leave room for comes back. Raises
        ChatError for a key that there is not, or a value that it does not take.
        """
        before = self._in_force
        with _in_words():
            wanted = before.with_setting(key, value)
        self._switch(key.removeprefix("context."), wanted)
        if wanted.context is before.context:
            return f"rolling context is {'on' if wanted.rolling else 'off'}"
        was, now = value_of(before.context, key), value_of(wanted.context, key)
        return f"{key.removeprefix('context.')} is {now}" + (f", it was {was}" if was != now else " already")

    def preview(self, settings: Mapping[str, str] | None = None) -> PromptReport:
        """The report of the next request if rolling context were on, under these settings as typed.

        Nothing is changed. Raises ChatError as `set_context` does.
        """
        now = replace(self._in_force, rolling=True)
        with _in_words():
            wanted = now.with_settings(settings or {})
        context = None if wanted.context == now.context else wanted.context
        return self._planner.preview(self.messages, context=context, rolling=wanted.rolling)

    def undo_switch(self) -> str:
        """Take back the last change of rolling context or of its settings, and return to the plan before it.

        Returns the line that says what was undone. Raises ChatError when there is nothing.
        """
        if not self._switches:
            raise ChatError(
                "There is nothing to undo: rolling context was not changed since this session was opened."
            )
        switch = self._switches.pop()
        self._put_in_force(switch.before, switch.plan)
        if not switch.key:
            return f"Undone: rolling context is {'on' if self.rolling else 'off'} again."
        return f"Undone: {switch.key} is {value_of(switch.before.context, switch.key)} again."

    def set_model(self, model: str) -> str:
        """Let `model` answer from the next request on; returns the line that says so."""
        self._may_leave()
        with _in_words():
            choice = pick_model(self._runtime, model, None)
            self._planner.use_model(choice.model)
        self._model_line = f"model: {choice.model} (from /model)"
        self._update(model=choice.model)
        return self._model_line

    def start_new(self) -> None:
        """Leave this session as it is and begin another, with the same model."""
        self._may_leave()
        model, rolling = self.model, self._runtime.settings.context.enabled
        folder = str(self._runtime.folder)
        with _in_words():
            self._move_to(
                self._runtime.store.create_session(folder=folder, model=model, rolling=rolling), model
            )

    def resume(self, id_start: str) -> None:
        """Leave this session and open the one whose id begins so."""
        self._may_leave()
        with _in_words():
            info = self._runtime.store.session(id_start)
            if info.id != self._info.id:
                choice = pick_model(self._runtime, "", info)
                self._move_to(info, choice.model)
                self._model_line = choice.line

    def fork(self) -> None:
        """Go on in a copy of this session; the session itself stays as it is."""
        self._may_leave()
        with _in_words():
            self._move_to(self._runtime.store.fork(self._info.id), self.model)

    def rename(self, title: str) -> None:
        """Give the session a title."""
        title = " ".join(title.split())
        if not title:
            raise ChatError("A title needs at least one character.")
        self._update(title=title)

    def refresh(self) -> bool:
        """Read what another process wrote to a session that we follow; whether there was anything.

        Once the other has let go of the session, or died, it is ours.
        """
        if self._holder is None or self.busy:
            return False
        with _in_words():
            self._holder = self._runtime.store.claim(self._info.id)
            changed = self._conversation.reload()
            if self._holder is None:
                changed |= self._mend()
        if changed:
            self._read_info()
        return changed

    def sessions(self) -> list[SessionInfo]:
        """All sessions: those of this folder first, the newest first among each."""
        with _in_words():
            everything = self._runtime.store.sessions()
        here = str(self._runtime.folder)
        return sorted(everything, key=lambda info: info.folder != here)

    async def files(self) -> list[FileState]:
        """The files that this session's tools read and wrote, and whether they are still the same."""
        with _in_words():
            used = self._runtime.store.files(self._info.id)
        return await in_background(partial(file_states, used))

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
        await self._runtime.provider.close()

    def close(self) -> None:
        """Let go of the session; one that nothing was said in leaves no trace. Stop a turn first."""
        self.stop()
        if not self._closed:
            self._closed = True
            self._let_go()

    # -- what the doors above share

    @property
    def _in_force(self) -> Wanted:
        return Wanted(self._runtime.settings.context, self.rolling)

    def _switch(self, key: str, wanted: Wanted) -> None:
        before, plan = self._in_force, self._planner.decisions
        if wanted == before:
            return
        self._switches.append(Switch("" if wanted.context == before.context else key, before, plan))
        self._put_in_force(wanted, self._planner.plan_under(wanted.context, self.messages))

    def _put_in_force(self, wanted: Wanted, plan: ContextPlan | None) -> None:
        self._runtime.settings = replace(self._runtime.settings, context=wanted.context)
        self._planner.rolling = wanted.rolling
        self._planner.use_plan(plan)
        self._update(rolling=wanted.rolling, plan=plan.to_json() if plan is not None else None)

    async def _run(self, text: str | None) -> AsyncGenerator[Event]:
        """Store what was said, then run the turn in a task of its own and hand out its events."""
        self._may_run()
        self._planner.read_instructions()
        if text is not None:
            with _in_words():
                said = TurnStarted(self._conversation.add_user(text))
        else:
            said = None
        turn = self._turn = RunningTurn(self._loop())
        try:
            if said is not None:
                yield said
            async for event in turn.events():
                if isinstance(event, TurnEnded):
                    self._end_turn()
                yield event
        finally:
            await turn.close()
            self._end_turn()

    def _loop(self) -> AgentLoop:
        runtime, planner = self._runtime, self._planner
        config = planner.config
        tails = frozenset(name for name, end in config.tools.items() if end == "tail")
        memory = BranchMemory.of(self._conversation, planner.model, config)
        calls = CallRunner(
            self._conversation, planner.tools, self._approvals,
            ToolContext(runtime.folder, runtime.environ, memory), tails,
        )  # fmt: skip
        return AgentLoop(
            self._conversation, planner, runtime.provider, calls,
            max_iterations=runtime.settings.agent.max_tool_iterations,
            log_file=str(runtime.paths.log_file),
        )  # fmt: skip

    def _end_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            self._usage += turn.usage
            self._read_info()

    def _enter(self, info: SessionInfo, model: str, rolling: bool) -> None:
        """Take up a session: claim it, read it, and mend what a process that died left open."""
        runtime = self._runtime
        self._info = info
        self._holder = runtime.store.claim(info.id)
        self._conversation = Conversation(runtime.store, info.id)
        self._planner = Planner(
            runtime, session_id=info.id, started_at=info.created_at,
            model=model, rolling=rolling, tools=self._tools,
        )  # fmt: skip
        self._planner.load_plan(runtime.store.state(info.id).plan)
        self._usage = sum((record.usage for record in runtime.store.requests(info.id)), Usage())
        self._approvals.forget()
        self._switches.clear()
        self._report = None
        self.notices = list(self._notices())
        if self._holder is not None:
            return
        self._mend()
        if (info.model, info.rolling) != (model, rolling):
            self._update(model=model, rolling=rolling)

    def _notices(self) -> Iterator[str]:
        if self._holder is not None:
            yield f"This session is {self.holder}: what is said there shows here; /fork makes your own copy."
        if self._info.folder != str(self._runtime.folder):
            yield f"This session was begun in {self._info.folder}; tools work in {self._runtime.folder}."
        if self._tools and not self._planner.tools:
            yield f"{self.model} takes no tools: it can neither read files nor run commands."

    def _move_to(self, info: SessionInfo, model: str) -> None:
        before = self._info.id
        self._let_go()
        self._enter(info, model, info.rolling)
        log.info("left session %s for %s", before, info.id)

    def _let_go(self) -> None:
        store = self._runtime.store
        if self._holder is not None:
            return
        try:
            if self._conversation.messages:
                store.release(self._info.id)
            else:
                store.delete(self._info.id)
        except StoreError:
            log.exception("session %s could not be let go of", self._info.id)

    def _mend(self) -> bool:
        """Settle what a process left open when it died, or a turn of ours that the store failed.

        Whether there was anything.
        """
        text = "[cancelled: the program ended before this was done]"
        settled = self._conversation.settle_reply(Ending.FAILED) is not None
        return bool(self._conversation.answer_open_calls(text, Ending.CANCELLED)) or settled

    def _may_run(self) -> None:
        if self.busy:
            raise ChatError(_BUSY)
        if self._holder is not None:
            self.refresh()
        if self._holder is not None:
            raise ChatError(f"This session is {self.holder}. /fork makes a copy of your own to go on in.")
        with _in_words():
            self._mend()

    def _may_leave(self) -> None:
        if self.busy:
            raise ChatError(_BUSY)

    def _update(self, **changes: Unpack[SessionChanges]) -> None:
        if self._holder is not None:
            return
        with _in_words():
            self._info = self._runtime.store.update_session(self._info.id, **changes)

    def _read_info(self) -> None:
        try:
            self._info = self._runtime.store.session(self._info.id)
        except StoreError:
            log.exception("session %s could not be read again", self._info.id)
