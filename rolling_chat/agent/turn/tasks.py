"""Tasks: calls that a second agent answers, in its own session and with the same permissions."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from rolling_chat.agent.conversation import Conversation
from rolling_chat.agent.errors import ChatError
from rolling_chat.agent.permissions import Permissions
from rolling_chat.agent.request.setup import RequestSetup
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.spending import Spending
from rolling_chat.agent.stops import finished
from rolling_chat.agent.turn.fallbacks import Fallbacks, ModelAt
from rolling_chat.agent.turn.loop import AgentLoop
from rolling_chat.agent.turn.running import EventQueue, RunningTurn
from rolling_chat.agent.turn.waiting import WaitingMessages
from rolling_chat.events import (
    Emit,
    Event,
    Noticed,
    Outcome,
    TaskEvent,
    ToolProgress,
    TurnEnded,
    TurnStarted,
)
from rolling_chat.mentions import without_marks
from rolling_chat.message_lines import RECALL
from rolling_chat.messages import Ending, FileTouch, ToolCall, Usage
from rolling_chat.providers.concurrency import answers_in_parallel, server_of
from rolling_chat.providers.protocol import ProviderError
from rolling_chat.sessions.records import AskedBy, SessionInfo, StoreError
from rolling_chat.task_record import FAILED, TASK, name_of
from rolling_chat.text import normalize_text
from rolling_chat.tools import Tool, ToolError, ToolResult
from rolling_chat.tools.base import TaskOrder
from rolling_chat.tools.task import read_order_of

MAX_TASKS = 4
"""The maximum number of tasks that run at once."""

_NOTE = """\
[This is a task from another agent, who reads nothing of what you do but your last reply. Nobody answers \
questions: where something is unclear, take what is most likely and say so. End with the answer itself, \
complete and brief, with names, paths and lines.]\
"""
_WAITS = "waits until another task is done"
_CUT = "[the answer reached its output limit here]"


@dataclass(frozen=True, slots=True)
class TaskScope:
    """What the session of a task shares with the session that it works for.

    `name` is for questions. `is_attached` returns whether the user attached a file outside of the folder to
    that session. Background commands belong to `owner`, a session id. File changes are undone with
    `reply_id`, the reply that called for the task. `asking` lets only one question be asked at a time.
    """

    name: str
    tools: Sequence[Tool]
    permissions: Permissions
    spending: Spending
    asking: asyncio.Lock
    is_attached: Callable[[str], bool]
    owner: str
    reply_id: str

    @property
    def asker(self) -> str:
        """The name of the task in its questions."""
        return f"task {self.name!r}"


class TaskSession(Protocol):
    """The part of a session that a task uses."""

    @property
    def info(self) -> SessionInfo:
        """The session's row."""
        ...

    @property
    def conversation(self) -> Conversation:
        """The messages."""
        ...

    def turn_loop(self, emit: Emit, waiting: WaitingMessages) -> AgentLoop:
        """Return the loop of a turn."""
        ...

    async def leave(self) -> None:
        """Release the session."""
        ...


@dataclass(slots=True)
class TaskRunner:
    """Runs the tasks that one turn of a session starts; `open` opens a task's session."""

    runtime: Runtime
    setup: RequestSetup
    conversation: Conversation
    permissions: Permissions
    spending: Spending
    fallbacks: Fallbacks
    asking: asyncio.Lock
    emit: Emit
    is_attached: Callable[[str], bool]
    open: Callable[[SessionInfo, TaskScope], TaskSession]
    _running: list[RunningTurn] = field(default_factory=list)
    _spent: Usage = field(default_factory=Usage)  # by tasks that have ended
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_TASKS))
    _servers: dict[str, asyncio.Semaphore] = field(default_factory=dict)

    @property
    def usage(self) -> Usage:
        """The usage of all tasks of the turn so far."""
        return sum((turn.usage for turn in self._running), self._spent)

    def only_reads(self, call: ToolCall) -> bool:
        """Return whether a call starts a task that changes nothing, so that it may run in parallel."""
        try:
            return all(tool.only_reads for tool in self._tools(read_order_of(call).tools))
        except ToolError:
            return True  # it starts no task

    async def run(self, call: ToolCall, index: int, order: TaskOrder) -> ToolResult:
        """Run the task of the call at `index` in its reply; return its answer. Raises ToolError."""
        tools, target = self._tools(order.tools), self._target(order.model)
        server = self._servers.setdefault(server_of(*target), _slots_of(target))
        if self._slots.locked() or server.locked():
            await self.emit(ToolProgress(call, _WAITS, 0))
        async with self._slots, server:
            return await self._run(call, AskedBy(self.conversation.reply_id, index), order, tools, target)

    async def _run(
        self, call: ToolCall, asked_by: AskedBy, order: TaskOrder, tools: Sequence[Tool], target: ModelAt
    ) -> ToolResult:
        prompt = normalize_text(without_marks(order.prompt))
        scope = TaskScope(
            name_of(prompt), tools, self.permissions, self.spending, self.asking, self.is_attached,
            owner=self.conversation.session_id, reply_id=asked_by.reply_id,
        )  # fmt: skip
        scope = replace(scope, spending=self.spending.named(scope.asker, self.asking))
        queue = self.conversation.queue
        with _in_words():
            session = await queue.run(lambda: self._opened(scope, asked_by, target))
        try:
            with _in_words():
                asked = await queue.run(partial(session.conversation.add_user, prompt, _NOTE, is_task=True))
            await self.emit(TaskEvent(call, session.info.id, TurnStarted(asked)))
            ended = await self._follow(call, session, scope)
            with _in_words():
                files = await queue.run(partial(self._touched, session.info.id))
            return _result(ended, session.conversation, files)
        finally:
            scope.spending.settle()
            await session.leave()

    def _opened(self, scope: TaskScope, asked_by: AskedBy, target: ModelAt) -> TaskSession:
        self.setup.keep_knowledge()  # what this turn has taught counts for the task, too
        return self.open(self._created(scope, asked_by, target), scope)

    def _created(self, scope: TaskScope, asked_by: AskedBy, target: ModelAt) -> SessionInfo:
        return self.runtime.store.create_session(
            folder=str(self.runtime.folder),
            model=target.model,
            api_base=target.address,
            rolling=True,
            title=f"Task: {scope.name}",
            asked_by=asked_by,
        )

    async def _follow(self, call: ToolCall, session: TaskSession, scope: TaskScope) -> TurnEnded:
        """Run the turn of a task and forward its events; a stop ends it cleanly."""
        events = EventQueue()
        turn = RunningTurn(session.turn_loop(events.put, WaitingMessages()), events)
        self._running.append(turn)
        ended = TurnEnded(Outcome.CANCELLED, Usage(), 0.0)
        try:
            async for event in turn.events():
                await self.emit(_forwarded(call, session.info.id, scope, event))
                ended = event if isinstance(event, TurnEnded) else ended
        finally:
            await _closed(turn)
            self._running.remove(turn)
            self._spent += turn.usage
        return ended

    def _tools(self, names: Sequence[str] | None) -> tuple[Tool, ...]:
        """Return the tools of a task, with `recall` for its own conversation. Raises ToolError."""
        known = {tool.name: tool for tool in self.setup.all_tools if tool.name != TASK}
        if names is None:
            names = [name for name, tool in known.items() if tool.only_reads]
        unknown = next((name for name in names if name not in known), None)
        if unknown is not None:
            there_is = ", ".join(known) or "none"
            raise ToolError(f"A task cannot have the tool {unknown!r}. The tools are: {there_is}.")
        return tuple(tool for name, tool in known.items() if name in names or name == RECALL)

    def _target(self, model: str) -> ModelAt:
        """Return the model that answers a task. Raises ToolError for one that the user did not allow."""
        own = ModelAt(self.setup.model, self.setup.address)
        if not model or model == own.model:
            return own
        allowed = self.runtime.settings.agent.task_models
        if model not in allowed:
            there_is = ", ".join(allowed) or "none but your own"
            raise ToolError(f"A task cannot be given to {model!r}. The models are: {there_is}.")
        target = self.fallbacks.locate(model)
        if isinstance(target, str):
            raise ToolError(target)
        return target

    def _touched(self, session: str) -> tuple[FileTouch, ...]:
        """Return the files that a task used, as partly known: the calling agent has not seen all of them."""
        return tuple(
            replace(use.touch, action="written in part" if "written" in use.touch.action else "read in part")
            for use in self.runtime.store.files(session)
        )


def _slots_of(target: ModelAt) -> asyncio.Semaphore:
    """Return the slots of a server; the user's own may answer only one request at a time."""
    return asyncio.Semaphore(MAX_TASKS if answers_in_parallel(server_of(*target)) else 1)


def _forwarded(call: ToolCall, session: str, scope: TaskScope, event: Event) -> Event:
    if isinstance(event, Noticed):
        return replace(event, text=f"{scope.asker}: {event.text}")
    return TaskEvent(call, session, event)


def _result(ended: TurnEnded, conversation: Conversation, files: tuple[FileTouch, ...]) -> ToolResult:
    """Return the result that the model gets for a task that has ended."""
    last = conversation.recent[-1]
    said = last.prose.strip() if last.role == "assistant" else ""
    match ended.outcome:
        case Outcome.DONE:
            return ToolResult(said or "[the task ended without an answer]", files=files)
        case Outcome.CUT:
            return ToolResult(f"{said}\n{_CUT}", files=files)
        case _:
            line = f"{FAILED}{ended.error or 'it was stopped'}"
            return ToolResult(f"{line}\nIt had said:\n{said}" if said else line, Ending.FAILED, files)


async def _closed(turn: RunningTurn) -> None:
    """Stop a turn if it still runs, and wait until it is settled even if a second stop arrives."""
    await finished(asyncio.create_task(turn.close()))


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except (ChatError, ProviderError, StoreError) as error:
        raise ToolError(f"{FAILED}{error}") from error
