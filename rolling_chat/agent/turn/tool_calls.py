"""Understand, permit, run and answer the tool calls of a reply. Every call gets an answer.

Calls that only read run side by side, all others one after another; results are in the order of the calls.
"""

from __future__ import annotations

import asyncio
import contextlib
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
from rolling_chat.agent.file_undo import keep_edit
from rolling_chat.agent.hooks.session_hooks import Ruling
from rolling_chat.agent.permissions import Permissions, asked_by, refused_by_user
from rolling_chat.agent.turn.call_arguments import parse_arguments
from rolling_chat.agent.turn.command_output import watch_output
from rolling_chat.agent.turn.hooked_calls import HookedCalls, refused_by_hook, verdict_with
from rolling_chat.agent.turn.room_notice import RoomNotice
from rolling_chat.agent.turn.sandboxing import Confinement, Sandboxing, repeated, stopped
from rolling_chat.agent.turn.unsaved import find_unsaved
from rolling_chat.events import (
    Emit,
    Noticed,
    Permission,
    PermissionAnswered,
    PermissionAsked,
    PermissionRequest,
    ToolEnded,
    ToolStarted,
)
from rolling_chat.messages import Ending, JsonObject, Message, ToolCall, Usage
from rolling_chat.permissions.rules import FETCH_TOOL, Subject, propose_rule
from rolling_chat.sessions.records import StoreError
from rolling_chat.task_record import TASK
from rolling_chat.text import normalize_text, one_line
from rolling_chat.tools import Tool, ToolContext, ToolError, ToolResult
from rolling_chat.tools.background import BACKGROUND
from rolling_chat.tools.base import TaskOrder
from rolling_chat.tools.editing import EditingTool, PreparedEdit
from rolling_chat.tools.mcp.tool import SearchTool
from rolling_chat.tools.sandbox.sandbox import Sandbox
from rolling_chat.web_addresses import parse_address

log = logging.getLogger("rolling_chat.agent.turn.tool_calls")


class Tasks(Protocol):
    """Runs the tasks that a turn gives to a second agent; `usage` is that of all of them so far."""

    @property
    def usage(self) -> Usage:
        """The usage so far."""
        ...

    def only_reads(self, call: ToolCall) -> bool:
        """Return whether a call begins a task that changes nothing."""
        ...

    async def run(self, call: ToolCall, index: int, order: TaskOrder) -> ToolResult:
        """Run the task of a call, and return its answer."""
        ...


MAX_CALLS_A_REPLY = 32
"""So many calls of one reply are run; the others are answered unrun."""

MAX_SIDE_BY_SIDE = 8
"""So many calls that only read run at once."""

REPEATS = 3
"""The same call for this many times in a turn is warned of."""


@dataclass(slots=True, eq=False)
class _Attempt:
    """One call of the reply that is being answered, the one at `index`, and how far it has come.

    `cut`: the reply reached its output limit, and this call may be half of one. `doubtful`: the model wrote
    the call as text, unasked, and may have meant to quote it. `unsaved` are texts that only an editor has.
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
        """Keep the result, and how long it took."""
        self.result, self.seconds = result, time.monotonic() - self.started


@dataclass(slots=True)
class CallRunner:
    """Runs the tool calls of one turn, and notices a call that is repeated again and again.

    `tasks` runs the tasks of the turn, None in a task. `asker` is the task that the turn is for, empty for
    none, and changes of files are undone with its `reply_id`; `asking` is held while a question is open.
    `room` tells the model when little of it is left.
    """

    conversation: Conversation
    tools: Sequence[Tool]
    permissions: Permissions
    sandboxing: Sandboxing
    context: ToolContext
    max_calls: int
    emit: Emit
    keeps_tail: frozenset[str] = frozenset()  # tools whose long results lose their beginning
    trusts_text: bool = False  # the model is told to write its calls as text
    tasks: Tasks | None = None
    asker: str = ""
    reply_id: str = ""
    hooks: HookedCalls | None = None
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    room: RoomNotice | None = None
    _seen: Counter[str] = field(default_factory=Counter)
    _taken: int = 0  # calls of this turn that were within the limits
    _open: deque[_Attempt] = field(default_factory=deque)  # the calls of the reply that have no answer yet
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_SIDE_BY_SIDE))

    @property
    def usage(self) -> Usage:
        """The usage of the turn's tasks so far."""
        return self.tasks.usage if self.tasks is not None else Usage()

    @property
    def stopped_by(self) -> str:
        """Why a hook ended the turn; empty while none did."""
        return self.hooks.stopped_by if self.hooks is not None else ""

    @property
    def is_spent(self) -> bool:
        """Whether this turn has reached its limit of calls."""
        return self._taken >= self.max_calls

    async def answer_all(self, reply: Message, *, cut: bool = False, note: str = "") -> None:
        """Answer the calls of a reply in order, without running those beyond the limits.

        `cut`: the reply reached its output limit, and the last of its calls may be half of one. `note` is a
        word to the model, which goes with the first result.
        """
        calls, doubtful = reply.tool_calls, reply.writes_calls and not self.trusts_text
        most = min(MAX_CALLS_A_REPLY, self.max_calls - self._taken)
        self._open = deque(
            _Attempt(call, index, cut and index + 1 == len(calls), doubtful)
            for index, call in enumerate(calls[:most])
        )
        if self._open:
            self._open[0].note = note
        for group in tuple(self._groups()):
            self._taken += len(group)
            await self._answer(group)
            _heed_stop()
            if self.stopped_by:
                for ended in self.refuse_rest("[not run: a hook ended the turn]", Ending.REFUSED):
                    await self.emit(ended)
                return
        beyond = len(calls) - most
        if beyond <= 0:
            return
        limit = f"at most {MAX_CALLS_A_REPLY} a reply and {self.max_calls:,} a turn"
        refused = ToolResult(f"[not run: limit of calls, {limit}]", Ending.REFUSED)
        for call in calls[most:]:
            await self.emit(self._ended(call, refused, 0.0))
        are = "call was" if beyond == 1 else "calls were"
        line = f"{beyond:,} {are} not run: limit of calls, {limit} (agent.max_tool_calls)."
        await self.emit(Noticed(line, warning=True))

    def _groups(self) -> Iterator[list[_Attempt]]:
        """Yield the open calls in order: those in a row that only read together, every other by itself."""
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
        """Run calls, side by side if there are several, and store each result in its turn."""
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
        """Run a call, or tell the model what is wrong with it."""
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
        ended = self._ended(attempt.call, result, attempt.seconds)
        self._open.popleft()
        await self.emit(ended)

    async def _result_of(self, attempt: _Attempt) -> ToolResult:
        """Run a call if it is permitted. Raises ToolError for one that cannot be run as it is."""
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
        edit = await self._prepare(tool, arguments)
        confinement = await self.sandboxing.of_call(tool, detail, arguments)
        async with self.asking:  # one question at a time, in the order of the calls
            refusal = await self._refusal(attempt, tool, detail, edit, confinement.remark, ruling=ruling)
        if refusal:
            return ToolResult(refusal, Ending.REFUSED)
        if times >= REPEATS:
            said = f"The model makes the same call for the {_ordinal(times)} time: {one_line(detail, 120)}"
            await self.emit(Noticed(said, warning=True))
        async with self._slots:
            attempt.is_running, attempt.started = True, time.monotonic()
            await self.emit(ToolStarted(call))
            if edit is None:
                result = await self._run_confined(attempt, tool, arguments, detail, confinement)
            else:
                result = await self._make(edit)
        if self.hooks is not None:
            notes = await self.hooks.after(tool.name, call.id, arguments, result)
            for note in (*ruling.contexts, *notes):
                result = self._with_note(call, result, note)
        return self._with_note(call, result, _repeated(times)) if times >= REPEATS else result

    async def _prepare(self, tool: Tool, arguments: JsonObject) -> PreparedEdit | None:
        """Return the change that a call would make of files, None for a tool that makes none."""
        if not isinstance(tool, EditingTool):
            return None
        return await asyncio.to_thread(_prepared, tool, arguments, self.context)

    async def _make(self, edit: PreparedEdit) -> ToolResult:
        """Make the change that was shown; a stop in the middle waits until it is made or not.

        What was made is answered before the stop is heeded: a thread cannot be stopped halfway.
        """
        made = asyncio.create_task(asyncio.to_thread(self._make_kept, edit))
        while not made.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({made})
        return made.result()

    def _make_kept(self, edit: PreparedEdit) -> ToolResult:
        """Keep what an edit changes, so that it can be undone, and make it."""
        try:
            reply_id = self.reply_id or self.conversation.reply_id
            forget = keep_edit(self.conversation.store.kept_files, reply_id, edit)
        except StoreError as error:
            return ToolResult(
                f"Nothing was changed: it could not be kept for an undo ({error}).", Ending.FAILED
            )
        try:
            return edit.make(self.context)
        except ToolError as error:
            forget()
            return ToolResult(str(error), Ending.FAILED)
        except Exception as error:  # the change stays kept: it may have been made
            log.exception("a change of files broke")
            return ToolResult(f"The change broke: {type(error).__name__}. Look at the files.", Ending.FAILED)

    async def _refusal(
        self,
        attempt: _Attempt,
        tool: Tool,
        detail: str,
        edit: PreparedEdit | None,
        remark: str,
        *,
        ruling: Ruling,
    ) -> str:
        """Return what the model reads if rules or user refuse the call; empty when it may run.

        `remark` is shown beside the question. `ruling` is that of the hooks.
        """
        call, doubtful = attempt.call, attempt.doubtful
        subject: Subject = detail if edit is None else edit.paths
        alone = () if edit is None else edit.exact_only(self.permissions.runtime.paths.own)
        verdict = self.permissions.verdict(
            tool, subject, is_edit=edit is not None, exact_only=alone, doubtful=doubtful
        )
        can_ask = self.permissions.listener.ask is not None
        was_refused = (tool.name, detail) in self.permissions.refused_calls
        must_ask = doubtful or bool(alone) or was_refused
        verdict = verdict_with(verdict, ruling, subject, must_ask=must_ask, can_ask=can_ask)
        if verdict == "allowed":
            return ""
        if verdict == "refused":
            return self.permissions.refusal(tool, subject, doubtful=doubtful)
        title = _title(tool, detail) + (f" ({remark})" if remark else "")
        title += " The model wrote this call as text." if doubtful else ""
        title = asked_by(self.asker, title)
        rule = propose_rule(tool.name, subject, alone)
        if edit is None:
            request = PermissionRequest(call, title, detail, rule)
        else:
            request = PermissionRequest(call, title, edit.diff, rule, is_diff=True)
        await self.emit(PermissionAsked(request))
        answer = await self.permissions.decide(request)
        await self.emit(PermissionAnswered(call))
        if fault := self.permissions.take_fault():
            await self.emit(Noticed(fault, warning=True))
        if answer.permission is not Permission.NO:
            return ""
        self.permissions.refused_calls.add((tool.name, detail))
        return refused_by_user(normalize_text(answer.words))

    def refuse_rest(self, text: str, ending: Ending) -> list[ToolEnded]:
        """Answer every open call without running it.

        One that was running is reported as cancelled; one that was done, and waited for its turn, as done.
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
        there_is = ", ".join(tool.name for tool in self.tools) or "none"
        raise ToolError(f"There is no tool {call.name!r}. The tools are: {there_is}.")

    def _count(self, call: ToolCall, arguments: JsonObject) -> int:
        key = f"{call.name} {json.dumps(arguments, sort_keys=True)}"
        self._seen[key] += 1
        return self._seen[key]

    async def _run_confined(
        self, attempt: _Attempt, tool: Tool, arguments: JsonObject, detail: str, confinement: Confinement
    ) -> ToolResult:
        """Run a call in its sandbox, if it has one; again without, if that stopped it and the user agrees."""
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
        """Store the result of a call, and return the event that reports it."""
        message = self.conversation.add_result(
            call, result.text, result.ending, result.files, shown=result.shown, pictures=result.pictures
        )
        return ToolEnded(call, message, seconds)

    def _with_note(self, call: ToolCall, result: ToolResult, note: str) -> ToolResult:
        """The result with a word to the model, at the end of it that a long result keeps."""
        parts = (result.text, note) if call.name in self.keeps_tail else (note, result.text)
        return replace(result, text="\n".join(parts))


def _resolved(tool: Tool, arguments: JsonObject) -> tuple[Tool, JsonObject]:
    """Return the tool that a call means, and its arguments: one that was found is called by the finder."""
    return (isinstance(tool, SearchTool) and tool.resolve(arguments)) or (tool, arguments)


def _repeated(times: int) -> str:
    return (
        f"[note: this same call was made for the {_ordinal(times)} time in this turn; "
        "do something else, or answer]"
    )


def _title(tool: Tool, detail: str) -> str:
    if tool.name == FETCH_TOOL:
        return f"Fetch from {parse_address(detail).site}?"
    return f"Allow {tool.name}?"


def _prepared(tool: EditingTool, arguments: JsonObject, context: ToolContext) -> PreparedEdit:
    """Prepare a change and its diff. Raises ToolError."""
    try:
        edit = tool.prepare(arguments, context)
        edit.diff  # noqa: B018 - computed here, in the thread, for the question and the transcript
    except ToolError:
        raise
    except Exception as error:
        log.exception("%s broke", tool.name)
        raise ToolError(f"{tool.name} broke: {type(error).__name__}. Try another way.") from None
    return edit


async def _end_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Stop the tasks that still run, and wait until all have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not complain of it


def _heed_stop() -> None:
    """A tool may swallow the cancellation that was meant for the turn; the turn ends all the same."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _ordinal(number: int) -> str:
    if number % 100 in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
