"""The offline model as litellm sees it: a custom provider that streams, counts and refuses."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Sequence
from types import ModuleType
from typing import Any

from rolling_chat.messages import Json, JsonObject
from rolling_chat.providers.offline.offline_model import OfflineReply, reply_to
from rolling_chat.providers.offline.token_counts import count_prompt, count_text, fitting_pieces
from rolling_chat.providers.offline.window import offline_window

_PROVIDER = "demo"
DELAY_VARIABLE = "ROLLING_CHAT_OFFLINE_DELAY"  # milliseconds a chunk
_DEFAULT_DELAY = 8.0
_PIECE = re.compile(r"\S+\s*|\s+")
_CALL_FRAMING = 8  # tokens, as the pipeline counts a call


def register_offline_model(litellm: ModuleType) -> None:
    """Make `demo/…` a provider of litellm's; once, however often it is called."""
    if any(entry["provider"] == _PROVIDER for entry in litellm.custom_provider_map):
        return
    # litellm is not imported with this module, so its base class comes in only here
    handler = type("OfflineLLM", (_OfflineRoad, litellm.CustomLLM), {"litellm": litellm})()
    litellm.custom_provider_map.append({"provider": _PROVIDER, "custom_handler": handler})


class _OfflineRoad:
    """The methods of litellm's `CustomLLM` that streaming needs."""

    litellm: Any

    async def astreaming(
        self, model: str, messages: list[dict[str, Json]], optional_params: dict[str, Json], **_others: Any
    ) -> AsyncIterator[dict[str, Json]]:
        """Yield litellm's generic chunks: the text word by word, or the calls in two pieces each."""
        tools = optional_params.get("tools") or []
        limit = optional_params.get("max_tokens") or optional_params.get("max_completion_tokens")
        prompt_tokens = await asyncio.to_thread(count_prompt, messages, tools)
        room = self._room(model, prompt_tokens, limit)
        reply = await asyncio.to_thread(
            reply_to, messages, tools, may_call=optional_params.get("tool_choice") != "none"
        )
        delay = _delay()
        completion_tokens, reason = 0, "stop"
        if reply.calls:
            completion_tokens, reason = _tokens_of_calls(reply), "tool_calls"
            for chunk in _call_chunks(reply):
                yield chunk
                await asyncio.sleep(delay)
        else:
            pieces = _PIECE.findall(reply.text)
            kept = pieces[: fitting_pieces(pieces, room)]
            reason = "stop" if len(kept) == len(pieces) else "length"
            completion_tokens = count_text("".join(kept))
            for piece in kept:
                yield _chunk(text=piece)
                await asyncio.sleep(delay)
        yield _chunk(finish_reason=reason, usage=_usage(prompt_tokens, completion_tokens))

    def _room(self, model: str, prompt_tokens: int, limit: int | None) -> int:
        """Return the tokens left for the answer. Raises litellm's own exception if there are none."""
        window = offline_window(model)
        if window is None:
            raise self.litellm.NotFoundError(
                message=f"model not found: demo/{model}", model=model, llm_provider=_PROVIDER
            )
        asked = prompt_tokens + (limit or 0)
        if asked > window or prompt_tokens >= window:
            counted = (
                f"you requested {asked} tokens ({prompt_tokens} in the messages, {limit} in the completion)"
                if limit
                else f"your messages resulted in {prompt_tokens} tokens"
            )
            raise self.litellm.ContextWindowExceededError(
                message=f"This model's maximum context length is {window} tokens. However, {counted}. "
                "Please reduce the length of the messages.",
                model=model,
                llm_provider=_PROVIDER,
            )
        return min(limit or window, window - prompt_tokens)


def _call_chunks(reply: OfflineReply) -> list[dict[str, Json]]:
    chunks = []
    for index, call in enumerate(reply.calls):
        middle = len(call.arguments) // 2
        chunks.append(_chunk(call=_fragment(index, call.id, call.name, call.arguments[:middle])))
        chunks.append(_chunk(call=_fragment(index, None, None, call.arguments[middle:])))
    return chunks


def _fragment(index: int, id: str | None, name: str | None, arguments: str) -> JsonObject:
    return {
        "id": id,
        "type": "function",
        "index": index,
        "function": {"name": name, "arguments": arguments},
    }


def _chunk(
    text: str = "",
    call: JsonObject | None = None,
    finish_reason: str = "",
    usage: JsonObject | None = None,
) -> dict[str, Json]:
    return {
        "text": text,
        "tool_use": call,
        "is_finished": bool(finish_reason),
        "finish_reason": finish_reason,
        "usage": usage,
        "index": 0,
    }


def _usage(prompt_tokens: int, completion_tokens: int) -> JsonObject:
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


def _tokens_of_calls(reply: OfflineReply) -> int:
    texts: Sequence[str] = [text for call in reply.calls for text in (call.name, call.arguments)]
    return sum(map(count_text, texts)) + _CALL_FRAMING * len(reply.calls)


def _delay() -> float:
    """Return the seconds between chunks, so that streaming can be seen; 0 still lets the event loop run."""
    try:
        return max(0.0, float(os.environ.get(DELAY_VARIABLE, _DEFAULT_DELAY))) / 1000
    except ValueError:
        return _DEFAULT_DELAY / 1000
