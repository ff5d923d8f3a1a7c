"""Stream the offline model's answers within this process, without litellm."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import replace

from rolling_chat.messages import Ending, Json, JsonObject, Message, Usage
from rolling_chat.providers.model_ref import unknown_model_line
from rolling_chat.providers.offline.offline_model import OfflineReply, as_text, reply_to
from rolling_chat.providers.offline.token_counts import count_prompt, count_text, fitting_pieces
from rolling_chat.providers.offline.window import OFFLINE_MODEL, offline_window
from rolling_chat.providers.protocol import (
    Delta,
    ErrorKind,
    Finished,
    ProviderError,
    Request,
    TextDelta,
    ToolCallDelta,
)
from rolling_chat.providers.wire import made_by, to_wire

DELAY_VARIABLE = "ROLLING_CHAT_OFFLINE_DELAY"  # milliseconds per chunk
_DEFAULT_DELAY = 8.0
_PIECE = re.compile(r"\S+\s*|\s+")
_CALL_FRAMING = 8  # tokens, as in the pipeline's count of a call


async def stream_offline(
    request: Request, messages: Sequence[JsonObject], tools: Sequence[dict[str, Json]]
) -> AsyncGenerator[Delta, None]:
    """Answer `request`, given in its wire form: text word by word, or each call in two pieces.

    Raises ProviderError for a prompt that exceeds the window, or for an invalid window size in the model's
    name.
    """
    prompt_tokens = await asyncio.to_thread(count_prompt, messages, tools)
    room = _room(request, prompt_tokens)
    if request.text_tools:  # it reads calls and results in their original form, and writes calls as text
        messages = to_wire(replace(request, text_tools=False), marks=False)
        tools = list(request.tools)
    reply = await asyncio.to_thread(reply_to, messages, tools, may_call=request.tool_choice != "none")
    if request.text_tools and reply.calls:
        reply = OfflineReply(as_text(reply.calls))
    delay, ending = _delay(), Ending.COMPLETE
    text = ""
    if reply.calls:
        completion_tokens = _tokens_of_calls(reply)
        for delta in _call_deltas(reply):
            yield delta
            await asyncio.sleep(delay)
    else:
        pieces = _PIECE.findall(reply.text)
        kept = pieces[: fitting_pieces(pieces, room)]
        text, ending = "".join(kept), Ending.COMPLETE if len(kept) == len(pieces) else Ending.LENGTH
        completion_tokens = count_text(text)
        for piece in kept:
            yield TextDelta(piece)
            await asyncio.sleep(delay)
    message = Message(
        "assistant", text, tool_calls=reply.calls, made_by=made_by(request.model), ending=ending
    )
    yield Finished(message, Usage(input_tokens=prompt_tokens, output_tokens=completion_tokens, cost=0.0))


def _room(request: Request, prompt_tokens: int) -> int:
    """Return the tokens left for the answer. Raises ProviderError if there are none."""
    window, limit = offline_window(request.model), request.max_tokens
    if window is None:
        line = unknown_model_line(request.model, (OFFLINE_MODEL,))
        raise ProviderError(ErrorKind.MODEL_UNKNOWN, line)
    asked = prompt_tokens + (limit or 0)
    if asked > window or prompt_tokens >= window:
        raise ProviderError(
            ErrorKind.TOO_LONG,
            f"The prompt is too long for {request.model} ({asked:,} tokens where {window:,} fit): "
            "turn on /rolling-context, or start a /new session.",
            limit=window,
            requested=asked,
            prompt=prompt_tokens if limit else None,
        )
    return min(limit or window, window - prompt_tokens)


def _call_deltas(reply: OfflineReply) -> Iterator[Delta]:
    for index, call in enumerate(reply.calls):
        middle = len(call.arguments) // 2
        yield ToolCallDelta(index, call.id, call.name, call.arguments[:middle])
        yield ToolCallDelta(index, call.id, call.name, call.arguments[middle:])


def _tokens_of_calls(reply: OfflineReply) -> int:
    texts: Sequence[str] = [text for call in reply.calls for text in (call.name, call.arguments)]
    return sum(map(count_text, texts)) + _CALL_FRAMING * len(reply.calls)


def _delay() -> float:
    """Return the seconds between chunks, which make streaming visible; 0 still yields to the event loop."""
    try:
        return max(0.0, float(os.environ.get(DELAY_VARIABLE, _DEFAULT_DELAY))) / 1000
    except ValueError:
        return _DEFAULT_DELAY / 1000
