"""One reply of the model: its deltas are stored first, then emitted as events."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial

from rolling_chat.agent.conversation import Conversation
from rolling_chat.agent.turn.batching import batches
from rolling_chat.events import (
    CallForming,
    Emit,
    Noticed,
    ReasoningAdded,
    ReplyEnded,
    RequestStarted,
    RetryWaiting,
    TextAdded,
)
from rolling_chat.messages import Ending, MadeBy, Message, ToolCall, Usage
from rolling_chat.providers.background_thread import in_background
from rolling_chat.providers.protocol import (
    BROKEN_OFF,
    ErrorKind,
    Finished,
    Provider,
    ProviderError,
    ReasoningDelta,
    Request,
    Retrying,
    TextDelta,
    ToolCallDelta,
)
from rolling_chat.providers.text_calls import as_called, find_calls, find_misplaced_calls
from rolling_chat.text import normalize_text, split_whole

_LONG = 50_000  # characters; searching them for calls takes some milliseconds, hostile text longer
_QUOTED = "The answer ends with a tool call that it quotes from a message or a result; it was not run."


@dataclass(slots=True)
class Reply:
    """Sends one request and receives the reply; `usage` is known once it has ended.

    With `reads_calls`, calls that the model writes at the end of its text are treated as tool calls.
    """

    conversation: Conversation
    provider: Provider
    request: Request
    made_by: MadeBy
    iteration: int
    emit: Emit
    reads_calls: bool = False
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    has_begun: bool = False  # whether any part of the reply has arrived
    was_retried: bool = False
    note: str = ""  # for the model, about its calls
    is_misplaced: bool = False  # whether its calls must not run because something else follows them
    _id: str = ""
    _started: float = 0.0
    _half: str = ""  # the first half of a character whose second half has not arrived yet
    _calls: dict[int, tuple[str, int]] = field(default_factory=dict)

    async def receive(self) -> Message:
        """Return the sealed reply. Raises ProviderError and leaves the received part open for `end`."""
        begin = partial(self.conversation.begin_reply, self.made_by)
        self._id = await self.conversation.queue.run(begin)
        self._started = time.monotonic()
        await self.emit(RequestStarted(self.request.model, self.iteration, self._id))
        message: Message | None = None
        async with aclosing(batches(self.provider.stream(self.request))) as stream:
            async for batch in stream:
                for delta in batch:
                    if isinstance(delta, Finished):
                        message = await self._finish(delta)
                    else:
                        await self._take(delta)
        if message is None:
            raise ProviderError(ErrorKind.INTERRUPTED, BROKEN_OFF)
        return message

    def end(self, ending: Ending) -> ReplyEnded | None:
        """Settle a reply that a stop or an error left open: mark the received part, or drop an empty one."""
        self.seconds = time.monotonic() - self._started if self._started else 0.0
        kept = self.conversation.settle_reply(ending)
        return ReplyEnded(kept, self.usage, self.seconds) if kept is not None else None

    async def _take(self, delta: TextDelta | ReasoningDelta | ToolCallDelta | Retrying) -> None:
        self.has_begun |= not isinstance(delta, Retrying)
        match delta:
            case TextDelta(text):
                whole, self._half = split_whole(self._half + text)
                if text := normalize_text(whole):
                    await self.conversation.grow_reply(text=text)
                    await self.emit(TextAdded(self._id, text))
            case ReasoningDelta(text):
                if text := normalize_text(text):
                    await self.conversation.grow_reply(reasoning=text)
                    await self.emit(ReasoningAdded(self._id, text))
            case ToolCallDelta(index, _, name, arguments):
                known, characters = self._calls.get(index, ("", 0))
                self._calls[index] = (name or known, characters + len(arguments))
                await self.emit(CallForming(self._id, *self._calls[index]))
            case Retrying(attempt, left, delay, reason):
                self.was_retried = True
                await self.emit(RetryWaiting(attempt, left, delay, reason))

    async def _finish(self, finished: Finished) -> Message:
        message = normalize_message(finished.message)
        self.usage, self.has_begun = finished.usage, True
        self.seconds = time.monotonic() - self._started
        if not message.text and not message.tool_calls:
            # An empty reply cannot be sent back: whatever was shown of it is settled as a broken reply.
            line = "The model ended its reply without an answer. Send again, or ask otherwise."
            if message.ending is Ending.LENGTH:
                line = "The model reached its output limit before it said anything. Ask for less at once."
            raise ProviderError(ErrorKind.UNKNOWN, line)
        quoted = False
        if self.reads_calls and message.ending is Ending.COMPLETE and not message.tool_calls:
            message, quoted = await self._with_written_calls(message)
        sealed = await self.conversation.finish_reply(message)
        await self.emit(ReplyEnded(sealed, self.usage, self.seconds))
        if quoted:
            await self.emit(Noticed(_QUOTED, warning=True))
        return sealed

    async def _with_written_calls(self, message: Message) -> tuple[Message, bool]:
        """Return the reply with the calls at its end, and whether they were only quoted."""
        search = partial(find_calls, message.text, self.request.tools)
        found = await in_background(search) if len(message.text) > _LONG else search()
        if found is None and self.request.text_tools:
            found = await in_background(partial(find_misplaced_calls, message.text, self.request.tools))
            self.is_misplaced = found is not None
        if found is None:
            return message, False
        sources = (one.text for one in self.request.messages if one.role in {"user", "tool"})
        if found.is_quoted(sources):
            return message, True
        self.note = found.note
        return as_called(message, found), False


def normalize_message(message: Message) -> Message:
    """Return `message` with its content and calls normalized to text that can be stored."""
    content = normalize_text(message.content) if isinstance(message.content, str) else message.content
    calls = tuple(
        ToolCall(normalize_text(call.id), normalize_text(call.name), normalize_text(call.arguments))
        for call in message.tool_calls
    )
    return replace(message, content=content, tool_calls=calls)
