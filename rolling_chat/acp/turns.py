"""Run turns for a client: events become updates, and the end becomes a stop reason."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from acp import RequestError
from acp.schema import StopReason

from rolling_chat import figures
from rolling_chat.acp import tool_calls
from rolling_chat.acp.codes import INTERNAL_ERROR
from rolling_chat.acp.content import StreamedText
from rolling_chat.acp.questions import Offer, Questions
from rolling_chat.acp.updates import (
    OpenCalls,
    answer_chunk,
    notice_chunk,
    plan_of,
    thought_chunk,
    usage_of,
)
from rolling_chat.agent import Chat, ChatError
from rolling_chat.agent.turn.oversized import LargeMessage
from rolling_chat.context import PromptReport
from rolling_chat.events import (
    Event,
    Noticed,
    Outcome,
    PermissionAsked,
    PromptPlanned,
    ReasoningAdded,
    ReplyEnded,
    RetryWaiting,
    TaskEvent,
    TextAdded,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from rolling_chat.messages import Message, ToolCall
from rolling_chat.text import visible
from rolling_chat.todo_list import TODO

_log = logging.getLogger("rolling_chat.acp")

Send = Callable[[Any], Awaitable[None]]
Begin = Callable[[], AsyncGenerator[Event]]

_STOP_REASONS: dict[Outcome, StopReason] = {
    Outcome.DONE: "end_turn",
    Outcome.CUT: "max_tokens",
    Outcome.CANCELLED: "cancelled",
}
_ROLL = (
    "Rolling context would omit old messages from the prompt; all of them stay on disk. New sessions begin "
    "with it on."
)
_ROLL_OFFERS = [
    Offer("roll", "Turn rolling context on and go on", "allow_once"),
    Offer("no", "Cancel", "reject_once"),
]
_HEAD_AND_TAIL, _AS_FILE = "head and tail", "as a file"
_LARGE_OFFERS = [
    Offer(_HEAD_AND_TAIL, "Send its head and tail", "allow_once"),
    Offer(_AS_FILE, "Send it as a file that the model reads in pieces", "allow_once"),
    Offer("no", "Do not send", "reject_once"),
]


class Turns:
    """Runs the turns of one session; `send` sends an update, `sync` the changes of the session's state."""

    def __init__(
        self, chat: Chat, questions: Questions, send: Send, sync: Callable[[], Awaitable[None]]
    ) -> None:
        self._chat = chat
        self._questions = questions
        self._send = send
        self._sync = sync
        self._calls = OpenCalls(chat.trust.folder)
        self._tasks: dict[str, OpenCalls] = {}  # by session of the running tasks
        self._text, self._thought = StreamedText(), StreamedText()
        self._report: PromptReport | None = None

    async def run(self, begin: Begin) -> StopReason:
        """Run a turn, and others after a question about it. Raises RequestError if it fails."""
        while True:
            ended = await self._run_turn(begin())
            if ended.outcome in _STOP_REASONS:
                return _STOP_REASONS[ended.outcome]
            following = await self._after_full() if ended.outcome is Outcome.FULL else None
            if following is None:
                raise RequestError(
                    INTERNAL_ERROR, ended.error or "The turn failed.", {"outcome": ended.outcome.value}
                )
            begin = following

    async def show_usage(self) -> None:
        """Send the current figures of the gauge."""
        session = self._chat.session
        with contextlib.suppress(ChatError):
            await session.preview.ready()
            self._report = session.preview.report().without_stand_ins()
            await self._send(usage_of(self._report, self._chat.usage))

    async def _run_turn(self, events: AsyncGenerator[Event]) -> TurnEnded:
        ended: TurnEnded | None = None
        try:
            async with aclosing(events):
                async for event in events:
                    await self._handle(event)
                    ended = event if isinstance(event, TurnEnded) else ended
        finally:
            self._questions.forget()
        assert ended is not None
        await self.show_usage()
        await self._sync()
        return ended

    async def _handle(self, event: Event) -> None:
        match event:
            case TurnStarted():
                session = self._chat.session
                await session.conversation.queue.run(session.state.read_info)
                await self._sync()
            case PromptPlanned(report):
                self._report = report.without_stand_ins()
                await self._send(usage_of(self._report, self._chat.usage))
            case ReasoningAdded(reply_id, text):
                await self._stream(thought_chunk, f"{reply_id}-thought", self._thought.take(text))
            case TextAdded(reply_id, text):
                await self._stream(thought_chunk, f"{reply_id}-thought", self._thought.rest())
                await self._stream(answer_chunk, reply_id, self._text.take(text))
            case ReplyEnded(message):
                await self._end_reply(message)
            case Noticed(text):
                await self._send(notice_chunk(text))
            case RetryWaiting(reason=reason, delay=delay):
                await self._send(notice_chunk(f"{reason.rstrip('.')}; trying again in {delay:.0f} s."))
            case TaskEvent(call, session_id, inner):
                await self._handle_task_event(call, session_id, inner)
            case _:
                await self._handle_call_event(event, self._calls)

    async def _handle_call_event(self, event: Event, calls: OpenCalls) -> None:
        match event:
            case PermissionAsked(request):
                self._questions.announced(request.call, calls.id_of(request.call))
            case ToolStarted(call):
                await self._send(tool_calls.running(calls.id_of(call)))
            case ToolProgress(call, newest):
                await self._send(tool_calls.running(calls.id_of(call), newest))
            case ToolEnded(call, message):
                await self._send(calls.end(call, message))
                if call.name == TODO and calls is self._calls:
                    await self._send(plan_of(self._chat.session.todo))
            case _:
                pass

    async def _handle_task_event(self, call: ToolCall, session_id: str, event: Event) -> None:
        """Show a second agent's work: its calls as calls, its text as the output of its task."""
        calls = self._tasks.setdefault(session_id, OpenCalls(self._chat.trust.folder))
        match event:
            case ReplyEnded(message):
                if message.prose.strip():
                    await self._send(tool_calls.running(self._calls.id_of(call), visible(message.prose)))
                for update in calls.begin(message):
                    await self._send(update)
            case TurnEnded():
                del self._tasks[session_id]
            case _:
                await self._handle_call_event(event, calls)

    async def _end_reply(self, message: Message) -> None:
        await self._stream(thought_chunk, f"{message.id}-thought", self._thought.rest())
        await self._stream(answer_chunk, message.id, self._text.rest())
        self._text, self._thought = StreamedText(), StreamedText()
        for update in self._calls.begin(message):
            await self._send(update)
        if message.tool_calls and self._report is not None:
            await self._send(usage_of(self._report, self._chat.usage))

    async def _stream(self, chunk: Callable[[str, str], Any], id: str, text: str) -> None:
        if text:
            await self._send(chunk(text, id))

    async def _after_full(self) -> Begin | None:
        """Ask what to do about a request that does not fit; return the turn that continues, if any."""
        obstacle = await self._chat.session.oversized.find_obstacle()
        if obstacle.message is not None:
            return await self._shorten(obstacle.message)
        if obstacle.line:
            await self._send(notice_chunk(obstacle.line))
        if not obstacle.rolling_helps:
            return None
        if await self._questions.choose("The conversation no longer fits", _ROLL, _ROLL_OFFERS) != "roll":
            return None
        if warning := self._chat.session.overrides.set_rolling(True):
            await self._send(notice_chunk(warning))
        return self._chat.carry_on

    async def _shorten(self, large: LargeMessage) -> Begin | None:
        """Ask what to send instead of a message that is too large by itself, and undo that message."""
        session = self._chat.session
        offers = _LARGE_OFFERS if large.can_read else [_LARGE_OFFERS[0], _LARGE_OFFERS[-1]]
        text = (
            f"It takes {figures.tokens(large.tokens)} tokens, and {figures.tokens(large.room)} are free for "
            "it. All of it stays in this session."
        )
        answer = await self._questions.choose("Your message is too large", text, offers)
        if answer not in (_HEAD_AND_TAIL, _AS_FILE):
            session.history.undo()
            return None
        shorter = await session.oversized.keep_as_file(large, head_and_tail=answer == _HEAD_AND_TAIL)
        return lambda: self._chat.send(shorter)
