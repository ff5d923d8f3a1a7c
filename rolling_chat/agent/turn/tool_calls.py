"""One call of a tool: understood, permitted, run, answered. Every call gets an answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rolling_chat.agent.conversation import Conversation
from rolling_chat.agent.file_undo import keep_edit
from rolling_chat.agent.permissions import Permissions, refused_by_user
from rolling_chat.agent.turn.command_output import watch_output
from rolling_chat.events import (
    Emit,
    Noticed,
    Permission,
    PermissionAsked,
    PermissionRequest,
    ToolEnded,
    ToolStarted,
)
from rolling_chat.lenient_json import read_json
from rolling_chat.messages import Ending, JsonObject, ToolCall
from rolling_chat.permissions.rules import Subject, propose_rule
from rolling_chat.sessions.records import StoreError
from rolling_chat.text import normalize_text, one_line
from rolling_chat.tools import Tool, ToolContext, ToolError, ToolResult
from rolling_chat.tools.editing import EditingTool, PreparedEdit

log = logging.getLogger("rolling_chat.agent.turn.tool_calls")

MAX_CALLS_A_REPLY = 32
"""So many calls of one reply are run; the others are answered unrun."""

REPEATS = 3
"""The same call for this many times in a turn is warned of."""


@dataclass(slots=True)
class CallRunner:
    """Runs the tool calls of one turn, and notices a call that is repeated again and again."""

    conversation: Conversation
    tools: Sequence[Tool]
    permissions: Permissions
    context: ToolContext
    max_calls: int
    emit: Emit
    keeps_tail: frozenset[str] = frozenset()  # tools whose long results lose their beginning
    _seen: Counter[str] = field(default_factory=Counter)
    _taken: int = 0  # calls of this turn that were within the limits
    _running: ToolCall | None = None
    _started: float = 0.0

    @property
    def is_spent(self) -> bool:
        """Whether this turn has reached its limit of calls."""
        return self._taken >= self.max_calls

    async def answer_all(self, calls: Sequence[ToolCall], *, cut: bool = False) -> None:
        """Answer the calls of one reply in order, without running those beyond the limits.

        `cut`: the reply reached its output limit, and the last of its calls may be half of one.
        """
        most = min(MAX_CALLS_A_REPLY, self.max_calls - self._taken)
        for number, call in enumerate(calls[:most], start=1):
            self._taken += 1
            await self.answer(call, cut=cut and number == len(calls))
            _heed_stop()
        beyond = len(calls) - most
        if beyond <= 0:
            return
        limit = f"at most {MAX_CALLS_A_REPLY} a reply and {self.max_calls:,} a turn"
        for call in calls[most:]:
            self._started = time.monotonic()
            refused = ToolResult(f"[not run: limit of calls, {limit}]", Ending.REFUSED)
            await self.emit(self._answered(call, refused))
        are = "call was" if beyond == 1 else "calls were"
        line = f"{beyond:,} {are} not run: limit of calls, {limit} (agent.max_tool_calls)."
        await self.emit(Noticed(line, warning=True))

    async def answer(self, call: ToolCall, *, cut: bool = False) -> None:
        """Run `call` and store its result, or tell the model what is wrong with it.

        `cut`: the reply reached its output limit, and this call may be half of one.
        """
        self._started = time.monotonic()
        try:
            result = await self._result_of(call, cut=cut)
        except ToolError as error:
            result = ToolResult(str(error), Ending.FAILED)
        await self.emit(self._answered(call, result))

    async def _result_of(self, call: ToolCall, *, cut: bool) -> ToolResult:
        """Run `call` if it is permitted. Raises ToolError for one that cannot be run as it is."""
        tool = self._find(call)
        arguments = parse_arguments(call, tool, cut=cut)
        detail = tool.describe(arguments)
        times = self._count(call, arguments)
        edit = await self._prepare(tool, arguments)
        refusal = await self._refusal(call, tool, detail, edit)
        if refusal:
            return ToolResult(refusal, Ending.REFUSED)
        if times >= REPEATS:
            said = f"The model makes the same call for the {_ordinal(times)} time: {one_line(detail, 120)}"
            await self.emit(Noticed(said, warning=True))
        self._running, self._started = call, time.monotonic()
        await self.emit(ToolStarted(call))
        result = await (self._run(call, tool, arguments) if edit is None else self._make(edit))
        return self._with_note(call, result, times) if times >= REPEATS else result

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
            forget = keep_edit(self.conversation.store.kept_files, self.conversation.reply_id, edit)
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

    async def _refusal(self, call: ToolCall, tool: Tool, detail: str, edit: PreparedEdit | None) -> str:
        """Return what the model reads if rules or user refuse the call; empty when it may run."""
        subject: Subject = detail if edit is None else edit.paths
        is_edit = edit is not None and not edit.is_protected(self.permissions.runtime.paths.own)
        verdict = self.permissions.verdict(tool, subject, is_edit=is_edit)
        if verdict == "allowed":
            return ""
        if verdict == "refused":
            return self.permissions.refusal(tool, subject)
        rule, title = propose_rule(tool.name, subject), f"Allow {tool.name}?"
        if edit is None:
            request = PermissionRequest(call, title, detail, rule)
        else:
            request = PermissionRequest(call, title, edit.diff, rule, is_diff=True)
        await self.emit(PermissionAsked(request))
        answer = await self.permissions.decide(request)
        return refused_by_user(normalize_text(answer.words)) if answer.permission is Permission.NO else ""

    def refuse_rest(self, text: str, ending: Ending) -> list[ToolEnded]:
        """Answer every open call without running it; one that was running is reported as cancelled."""
        running, self._running = self._running, None
        answered: list[ToolEnded] = []
        for call in self.conversation.open_calls():
            was_running = running is not None and call == running and not answered
            said = "[cancelled while it ran; what it had done by then stays done]" if was_running else text
            seconds = time.monotonic() - self._started if was_running else 0.0
            message = self.conversation.add_result(call, said, ending)
            answered.append(ToolEnded(call, message, seconds))
        return answered

    def _find(self, call: ToolCall) -> Tool:
        for tool in self.tools:
            if tool.name == call.name:
                return tool
        there_is = ", ".join(tool.name for tool in self.tools) or "none"
        raise ToolError(f"There is no tool {call.name!r}. The tools are: {there_is}.")

    def _count(self, call: ToolCall, arguments: JsonObject) -> int:
        key = f"{call.name} {json.dumps(arguments, sort_keys=True)}"
        self._seen[key] += 1
        return self._seen[key]

    async def _run(self, call: ToolCall, tool: Tool, arguments: JsonObject) -> ToolResult:
        try:
            async with watch_output(call, self.emit) as watch:
                return await tool.run(arguments, replace(self.context, on_output=watch.hear))
        except ToolError as error:
            return ToolResult(str(error), Ending.FAILED)
        except Exception as error:
            log.exception("%s broke", tool.name)
            return ToolResult(f"{tool.name} broke: {type(error).__name__}. Try another way.", Ending.FAILED)

    def _answered(self, call: ToolCall, result: ToolResult) -> ToolEnded:
        message = self.conversation.add_result(call, result.text, result.ending, result.files, result.shown)
        self._running = None
        return ToolEnded(call, message, time.monotonic() - self._started)

    def _with_note(self, call: ToolCall, result: ToolResult, times: int) -> ToolResult:
        """The result with a word to the model, at the end of it that a long result keeps."""
        note = (
            f"[note: this same call was made for the {_ordinal(times)} time in this turn; "
            "do something else, or answer]"
        )
        parts = (result.text, note) if call.name in self.keeps_tail else (note, result.text)
        return replace(result, text="\n".join(parts))


def parse_arguments(call: ToolCall, tool: Tool, *, cut: bool = False) -> JsonObject:
    """Return a call's arguments as an object. Raises ToolError that shows what they should be."""
    text = call.arguments.strip()
    if not text and not cut:
        return {}
    try:
        arguments = read_json(text)
    except ValueError as error:
        if cut:
            raise ToolError(
                f"Not run: your reply reached its output limit in the middle of this call of {tool.name}. "
                "Make it again, with less in it."
            ) from None
        where = (
            f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else str(error)
        )
        raise ToolError(
            f"The arguments of {tool.name} are not valid JSON ({where}). {_shape(tool)}"
        ) from None
    if not isinstance(arguments, dict):
        raise ToolError(f"The arguments of {tool.name} must be a JSON object. {_shape(tool)}")
    return arguments


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


def _heed_stop() -> None:
    """A tool may swallow the cancellation that was meant for the turn; the turn ends all the same."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _shape(tool: Tool) -> str:
    parameters = tool.schema["function"]["parameters"]
    required = parameters.get("required", [])
    named = [
        f"{name} ({schema.get('type', 'any')}{'' if name in required else ', optional'})"
        for name, schema in parameters.get("properties", {}).items()
    ]
    return f"It takes one JSON object with: {', '.join(named) or 'nothing'}."


def _ordinal(number: int) -> str:
    if number % 100 in {11, 12, 13}:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
