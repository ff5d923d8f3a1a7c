"""Convert the objects of litellm's streams to fragments of a reply and usage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rolling_chat.messages import JsonObject, Usage
from rolling_chat.providers.fragments import CallFragment, Fragment
from rolling_chat.providers.whole_answers import token_count

# litellm appends Gemini's signature to a call's id after this marker, for clients that drop other fields
_SIGNATURE_IN_ID = "__thought__"


def fragments_of(chunk: Any) -> Iterator[Fragment]:
    """Yield a fragment for each choice of a chunk; a chunk with only usage has none."""
    for choice in getattr(chunk, "choices", None) or ():
        delta = getattr(choice, "delta", None)
        yield Fragment(
            text=_text(delta, "content"),
            reasoning=_text(delta, "reasoning_content"),
            thinking=tuple(map(_as_dict, getattr(delta, "thinking_blocks", None) or ())),
            calls=tuple(map(_call, getattr(delta, "tool_calls", None) or ())),
            text_signatures=_text_signatures(getattr(delta, "provider_specific_fields", None)),
            finish_reason=str(getattr(choice, "finish_reason", None) or ""),
        )


def usage_of(chunk: Any) -> Usage | None:
    """Return the usage in a chunk; None if there is none."""
    usage = getattr(chunk, "usage", None)
    if usage is None:
        return None
    prompt = getattr(usage, "prompt_tokens_details", None)
    completion = getattr(usage, "completion_tokens_details", None)
    return Usage(
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cached_read_tokens=_count(usage, "cache_read_input_tokens") or _count(prompt, "cached_tokens"),
        cached_write_tokens=_count(usage, "cache_creation_input_tokens")
        or _count(prompt, "cache_write_tokens")
        or _count(prompt, "cache_creation_tokens"),
        reasoning_tokens=_count(completion, "reasoning_tokens"),
        is_sum=_is_sum(usage),
    )


def _text(delta: Any, name: str) -> str:
    value = getattr(delta, name, None)
    return value if isinstance(value, str) else ""


def _call(fragment: Any) -> CallFragment:
    index = getattr(fragment, "index", None)
    function = getattr(fragment, "function", None)
    call_id, _separator, signature = str(getattr(fragment, "id", None) or "").partition(_SIGNATURE_IN_ID)
    return CallFragment(
        index=index if isinstance(index, int) else 0,
        id=call_id,
        name=str(getattr(function, "name", None) or ""),
        arguments=str(getattr(function, "arguments", None) or ""),
        signature=signature or _signature_of(fragment) or _signature_of(function),
    )


def _signature_of(holder: Any) -> str:
    fields = getattr(holder, "provider_specific_fields", None)
    return str(fields.get("thought_signature") or "") if isinstance(fields, dict) else ""


def _text_signatures(fields: Any) -> tuple[str, ...]:
    signatures = fields.get("thought_signatures") if isinstance(fields, dict) else None
    return tuple(signature for signature in signatures or () if isinstance(signature, str))


def _as_dict(value: Any) -> JsonObject:
    if isinstance(value, dict):
        return dict(value)
    return dict(value.model_dump(exclude_none=True)) if hasattr(value, "model_dump") else {}


def _is_sum(usage: Any) -> bool:
    """Return whether the usage is the sum of several requests.

    Anthropic reports the tools that it ran itself, and the rounds of a request that it compacted.
    """
    server_tools = getattr(usage, "server_tool_use", None)
    rounds = getattr(usage, "iterations", None)
    counts = server_tools if isinstance(server_tools, dict) else getattr(server_tools, "__dict__", {})
    has_run = any(isinstance(count, int) and count > 0 for count in counts.values())
    return has_run or (isinstance(rounds, list) and len(rounds) > 1)


def _count(holder: Any, name: str) -> int:
    return token_count(getattr(holder, name, None))
