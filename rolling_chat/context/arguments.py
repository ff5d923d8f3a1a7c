"""Long argument values of calls already answered: cut, and valid JSON all the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from rolling_chat.context.tool_results import CountText, truncate_text
from rolling_chat.messages import Json, Message, ToolCall

# What a call's arguments may keep once it was answered: enough to see what it was, in tokens.
KEPT_ARGUMENT_TOKENS = 150
_ATTEMPTS = 8

# Reasoning that its maker signed is refused when any part of its message was changed.
_SIGNED = frozenset(
    {
        "thinking_blocks",
        "signatures",
        "signature",
        "reasoning_details",
        "reasoning_items",
        "encrypted_content",
    }
)


def is_signed(message: Message) -> bool:
    """Does the message carry reasoning that must stay byte for byte?"""
    return bool(message.extras) and message.extras is not None and not _SIGNED.isdisjoint(message.extras)


def shorten_arguments(message: Message, cap: int, count: CountText) -> Message:
    """`message` with the long values of each call cut until its arguments take `cap` tokens; the same
    object if nothing was cut.

    Arguments that are no JSON object, and those of a signed message, stay as they are.
    """
    if is_signed(message) or not message.tool_calls:
        return message
    calls = tuple(_shorter(call, cap, count) for call in message.tool_calls)
    if all(new is old for new, old in zip(calls, message.tool_calls, strict=True)):
        return message
    return replace(message, tool_calls=calls, counts={})


@lru_cache(maxsize=1_024)
def _shorter(call: ToolCall, cap: int, count: CountText) -> ToolCall:
    if count(call.arguments) <= cap:
        return call
    try:
        values = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call
    if not isinstance(values, Mapping):
        return call
    value_cap, arguments = cap, call.arguments
    for _ in range(_ATTEMPTS):
        cut = {key: _cut(value, value_cap, count) for key, value in values.items()}
        arguments = json.dumps(cut, ensure_ascii=False)
        tokens = count(arguments)
        if tokens <= cap:
            break
        # a value takes more room inside JSON than alone, and several share the cap
        value_cap = max(1, min(value_cap - 1, int(value_cap * 0.97 * cap / tokens)))
    return replace(call, arguments=arguments) if len(arguments) < len(call.arguments) else call


def _cut(value: Json, cap: int, count: CountText) -> Json:
    match value:
        case str():
            return truncate_text(value, cap, "head", count) if count(value) > cap else value
        case list():
            return [_cut(item, cap, count) for item in value]
        case dict():
            return {key: _cut(item, cap, count) for key, item in value.items()}
        case _:
            return value
