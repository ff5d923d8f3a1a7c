"""Run the tool calls of a reply. Every call gets a result.

Adjacent calls that only read run in parallel, all others one by one. Results are in the order of the calls.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from rolling_chat.agent.conversation import Conversation
from rolling_chat.agent.hooks.session_hooks import Ruling
from rolling_chat.agent.permissions import Permissions
from rolling_chat.agent.turn.call_arguments import parse_arguments
from rolling_chat.agent.turn.call_permission import CallToApprove, refusal_of
from rolling_chat.agent.turn.command_output import watch_output
from rolling_chat.agent.turn.edits import make_edit, prepare_edit
from rolling_chat.agent.turn.hooked_calls import HookedCalls, refused_by_hook
from rolling_chat.agent.turn.room_notice import RoomNotice
from rolling_chat.agent.turn.sandboxing import Confinement, Sandboxing, repeated, stopped
from rolling_chat.agent.turn.unsaved import find_unsaved
from rolling_chat.events import Emit, Noticed, ToolEnded, ToolStarted
from rolling_chat.messages import Ending, JsonObject, Message, ToolCall, Usage
from rolling_chat.task_record import TASK
from rolling_chat.text import one_line
from rolling_chat.tools import Tool, ToolContext, ToolError, ToolResult
from rolling_chat.tools.background import BACKGROUND
from rolling_chat.tools.base import TaskOrder
from rolling_chat.tools.mcp.tool import SearchTool
from rolling_chat.tools.sandbox.sandbox import Sandbox

log = logging.getLogger("rolling_chat.agent.turn.tool_calls")


class Tasks(Protocol):
    """Runs the tasks that a turn gives to a second agent."""

    @property
    def usage(self) -> Usage:
        """The usage of all tasks so far."""
        ...

    def only_reads(self, call: ToolCall) -> bool:
        """Return whether a call starts a task that changes nothing."""
        ...

    async def run(self, call: ToolCall, index: int, order: TaskOrder) -> ToolResult:
        """Run the task of a call, and return its answer."""
        ...


MAX_CALLS_A_REPLY = 32
"""The maximum number of calls of one reply that are run."""

MAX_SIDE_BY_SIDE = 8
"""The maximum number of calls that run at once; only calls that only read do."""

REPEATS = 3
"""The number of identical calls in a turn from which on they are warned about."""


@dataclass(slots=True, eq=False)
class _Attempt:
    """The progress of one call, at `index` in the reply.

    `cut`: the reply reached its output limit, and this call may be incomplete. `doubtful`: the model wrote
    the call as text without being told to, and may have meant to quote it. `unsaved` has the texts of files
    with unsaved changes in an editor.
    """

    call: ToolCall
    index: int
    cut: bool
    doubtful: bool
    note: str = ""
    unsaved: Mapping[Path, str] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)
    is_running: bool = False
    result: ToolResult | None = None
    seconds: float = 0.0

    def end(self, result: ToolResult) -> None:
        """Set the result, and the seconds that the call took."""
        self.result, self.seconds = result, time.monotonic() - self.started


@dataclass(slots=True)
class CallRunner:
    """Runs the tool calls of one turn, and warns about a call that is made again and again.

    `tasks` runs the tasks of the turn; None in a task. `asker` is the task that the turn is for, if any, and
    `reply_id` the reply that called for it, with which file changes are undone. `asking` is locked while a
    question is open. `room` tells the model when little room is left.
    """

    conversation: Conversation
    tools: Sequence[Tool]
    permissions: Permissions
    sandboxing: Sandboxing
    context: ToolContext
    max_calls: int
    emit: Emit
    keeps_tail: frozenset[str] = frozenset()  # tools whose long results are cut at the beginning
    trusts_text: bool = False  # whether the model is told to write its calls as text
    tasks: Tasks | None = None
    asker: str = ""
    reply_id: str = ""
    hooks: HookedCalls | None = None
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    room: RoomNotice | None = None
    _times_made: Counter[str] = field(default_factory=Counter)
    _count_run: int = 0  # calls of this turn within the limits
    _open: deque[_Attempt] = field(default_factory=deque)  # the calls of the reply without a result
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_SIDE_BY_SIDE))

    @property
    def usage(self) -> Usage:
        """The usage of the turn's tasks so far."""
        return self.tasks.usage if self.tasks is not None else Usage()

    @property
    def stopped_by(self) -> str:
        """Why a hook ended the turn; empty if none did."""
        return self.hooks.stopped_by if self.hooks is not None else ""

    @property
    def is_spent(self) -> bool:
        """Whether this turn has reached its limit of calls."""
        return self._count_run >= self.max_calls

    async def answer_all(self, reply: Message, *, cut: bool = False, note: str = "") -> None:
        """Add a result for every call of a reply, in order, without running those beyond the limits.

        `cut`: the reply reached its output limit, and its last call may be incomplete. `note` is for the
        model, and goes with the first result.
        """
        calls, doubtful = reply.tool_calls, reply.writes_calls and not self.trusts_text
        allowed = min(MAX_CALLS_A_REPLY, self.max_calls - self._count_run)
        self._open = deque(
            _Attempt(call, index, cut and index + 1 == len(calls), doubtful)
            for index, call in enumerate(calls[:allowed])
        )
        if self._open:
            self._open[0].note = note
        for group in tuple(self._groups()):
            self._count_run += len(group)
            await self._answer(group)
            _heed_stop()
            if self.stopped_by:
                await self.refuse("[not run: a hook ended the turn]")
                return
        beyond = len(calls) - allowed
        if beyond <= 0:
            return
        limit = f"at most {MAX_CALLS_A_REPLY} a reply and {self.max_calls:,} a turn"
        await self.refuse(f"[not run: limit of calls, {limit}]")
        calls_were = "call was" if beyond == 1 else "calls were"
        line = f"{beyond:,} {calls_were} not run: limit of calls, {limit} (agent.max_tool_calls)."
        await self.emit(Noticed(line, warning=True))

    def _groups(self) -> Iterator[list[_Attempt]]:
        """Yield the open calls in order: adjacent ones that only read as a group, all others alone."""
        reading = {tool.name for tool in self.tools if tool.only_reads}

        def only_reads_in(attempt: _Attempt) -> bool:
            call = attempt.call
            is_task = call.name == TASK and self.tasks is not None
            return self.tasks.only_reads(call) if is_task and self.tasks else call.name in reading

        for only_reads, group in itertools.groupby(self._open, only_reads_in):
            if only_reads:
                yield list(group)
            else:
                yield from ([one] for one in group)

    async def _answer(self, group: Sequence[_Attempt]) -> None:
        """Run calls, in parallel if there are several, and store their results in order."""
        if len(group) == 1:
            await self._attempt(group[0])
            await self._store_next()
            return
        tasks = [asyncio.create_task(self._attempt(one)) for one in group]
        try:
            for task in tasks:
                await task
                await self._store_next()
        finally:
            await _end_all(tasks)

    async def _attempt(self, attempt: _Attempt) -> None:
        """Run a call; if it cannot be run, its result tells the model why."""
        attempt.started = time.monotonic()
        try:
            result = await self._result_of(attempt)
        except ToolError as error:
            result = ToolResult(str(error), Ending.FAILED)
        attempt.end(result)

    async def _store_next(self) -> None:
        """Store the result of the first open call."""
        attempt = self._open[0]
        assert attempt.result is not None
        result = attempt.result
        news = (BACKGROUND.take_news(self.context.session), attempt.note, self._room_line(result))
        for note in news:
            if note:
                result = self._with_note(attempt.call, result, note)
        store = partial(self._ended, attempt.call, result, attempt.seconds)
        ended = await self.conversation.queue.run(store)
        self._open.popleft()
        await self.emit(ended)

    async def _result_of(self, attempt: _Attempt) -> ToolResult:
        """Run a call if it is permitted, and return its result. Raises ToolError if it is not valid."""
        call = attempt.call
        tool = self._find(call)
        arguments = parse_arguments(call, tool, cut=attempt.cut)
        tool, arguments = _resolved(tool, arguments)
        detail = tool.describe(arguments)
        ruling = Ruling()
        if self.hooks is not None:
            ruling = await self.hooks.before(tool.name, call.id, arguments)
        if ruling.refuses:
            return refused_by_hook(ruling)
        if ruling.changed_by:
            arguments = ruling.arguments
            detail = tool.describe(arguments)
        times = self._count(call, arguments)
        attempt.unsaved = await find_unsaved(self.permissions.listener.unsaved, tool, arguments, self.context)
        edit = await prepare_edit(tool, arguments, self.context)
        confinement = await self.sandboxing.of_call(tool, detail, arguments)
        async with self.asking:  # one question at a time, in the order of the calls
            refusal = await refusal_of(
                CallToApprove(
                    call, tool, detail, edit, ruling,
                    remark=confinement.remark, doubtful=attempt.doubtful, asker=self.asker,
                ),
                self.permissions,
                self.emit,
            )  # fmt: skip
        if refusal:
            return ToolResult(refusal, Ending.REFUSED)
        if times >= REPEATS:
            line = f"The model makes the same call for the {_ordinal(times)} time: {one_line(detail, 120)}"
            await self.emit(Noticed(line, warning=True))
        async with self._slots:
            attempt.is_running, attempt.started = True, time.monotonic()
            await self.emit(ToolStarted(call))
            if edit is None:
                result = await self._run_confined(attempt, tool, arguments, detail, confinement)
            else:
                reply_id = self.reply_id or self.conversation.reply_id
                result = await make_edit(edit, self.context, self.conversation.store.kept_files, reply_id)
        if self.hooks is not None:
            notes = await self.hooks.after(tool.name, call.id, arguments, result)
            for note in (*ruling.contexts, *notes):
                result = self._with_note(call, result, note)
        return self._with_note(call, result, _repeated(times)) if times >= REPEATS else result

    async def refuse(self, text: str) -> None:
        """Answer every open call without running it, and report it."""
        for ended in await self.conversation.queue.run(partial(self.refuse_rest, text, Ending.REFUSED)):
            await self.emit(ended)

    def refuse_rest(self, text: str, ending: Ending) -> list[ToolEnded]:
        """Add a result with `text` for every open call, without running it.

        A call that was running is reported as cancelled. One that has finished keeps its own result.
        """
        answered: list[ToolEnded] = []
        for call in self.conversation.open_calls():
            attempt = self._open.popleft() if self._open else None
            result, seconds = ToolResult(text, ending), 0.0
            if attempt is not None and attempt.result is not None:
                result, seconds = attempt.result, attempt.seconds
            elif attempt is not None and attempt.is_running:
                result = ToolResult("[cancelled while it ran; what it had done by then stays done]", ending)
                seconds = time.monotonic() - attempt.started
            answered.append(self._ended(call, result, seconds))
        return answered

    def _room_line(self, result: ToolResult) -> str:
        return self.room.line_with(Message("tool", result.text)) if self.room is not None else ""

    def _find(self, call: ToolCall) -> Tool:
        for tool in self.tools:
            if tool.name == call.name:
                return tool
            if isinstance(tool, SearchTool) and (found := tool.find(call.name)) is not None:
                return found
        names = ", ".join(tool.name for tool in self.tools) or "none"
        raise ToolError(f"There is no tool {call.name!r}. The tools are: {names}.")

    def _count(self, call: ToolCall, arguments: JsonObject) -> int:
        key = f"{call.name} {json.dumps(arguments, sort_keys=True)}"
        self._times_made[key] += 1
        return self._times_made[key]

    async def _run_confined(
        self, attempt: _Attempt, tool: Tool, arguments: JsonObject, detail: str, confinement: Confinement
    ) -> ToolResult:
        """Run a call in its sandbox, if any, and again without it if that stopped it and the user agrees."""
        call, sandbox = attempt.call, confinement.sandbox
        result = await self._run(attempt, tool, arguments, sandbox)
        runs_again = await self.sandboxing.offers_again(call, detail, result, confinement, self.emit)
        if sandbox is None or runs_again is None:
            return result
        if not runs_again:
            return stopped(result, sandbox)
        attempt.started = time.monotonic()
        await self.emit(ToolStarted(call))
        return repeated(await self._run(attempt, tool, arguments, None))

    async def _run(
        self, attempt: _Attempt, tool: Tool, arguments: JsonObject, sandbox: Sandbox | None
    ) -> ToolResult:
        call = attempt.call
        run_task = partial(self.tasks.run, call, attempt.index) if self.tasks is not None else None
        try:
            async with watch_output(call, self.emit) as watch:
                context = replace(
                    self.context, on_output=watch.hear, sandbox=sandbox, run_task=run_task,
                    unsaved=attempt.unsaved,
                )  # fmt: skip
                return await tool.run(arguments, context)
        except ToolError as error:
            return ToolResult(str(error), Ending.FAILED)
        except Exception as error:
            log.exception("%s broke", tool.name)
            return ToolResult(f"{tool.name} broke: {type(error).__name__}. Try another way.", Ending.FAILED)

    def _ended(self, call: ToolCall, result: ToolResult, seconds: float) -> ToolEnded:
        """Store the result of a call; return the event that reports it."""
        message = self.conversation.add_result(
            call, result.text, result.ending, result.files, shown=result.shown, pictures=result.pictures
        )
        return ToolEnded(call, message, seconds)

    def _with_note(self, call: ToolCall, result: ToolResult, note: str) -> ToolResult:
        """Return the result with a note for the model, at the end that is not cut if the result is long."""
        parts = (result.text, note) if call.name in self.keeps_tail else (note, result.text)
        return replace(result, text="\n".join(parts))


def _resolved(tool: Tool, arguments: JsonObject) -> tuple[Tool, JsonObject]:
    """Return the tool to run and its arguments; a search tool also calls the tools that it has found."""
    return (isinstance(tool, SearchTool) and tool.resolve(arguments)) or (tool, arguments)


def _repeated(times: int) -> str:
    return (
        f"[note: this same call was made for the {_ordinal(times)} time in this turn; "
        "do something else, or answer]"
    )


async def _end_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel the tasks that still run, and wait until all have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it


def _heed_stop() -> None:
    """Raise CancelledError if the turn was cancelled, even if a tool swallowed the cancellation."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _ordinal(number: int) -> str:
    if number % 100 in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
