"""Shorten the long arguments of answered tool calls while keeping them valid JSON."""

from __future__ import annotations

import json
from dataclasses import replace

from rolling_chat.context.count_memo import CountMemo, CountText
from rolling_chat.context.tool_results import truncate_text
from rolling_chat.messages import Json, Message, ToolCall

# Tokens that the arguments of an answered call may keep: enough to recognize the call.
KEPT_ARGUMENT_TOKENS = 150
_ATTEMPTS = 8

# Providers refuse signed reasoning if any part of its message was changed.
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
    """Return whether the message carries signed reasoning and must stay byte for byte."""
    return bool(message.extras) and message.extras is not None and not _SIGNED.isdisjoint(message.extras)


def shorten_arguments(
    message: Message, cap: int, count: CountText, memo: CountMemo, *, recall: str = ""
) -> Message:
    """Cut the long values of each tool call until its arguments take at most `cap` tokens.

    Return the same object if nothing was cut. Arguments that are not a JSON object, and those of a signed
    message, stay unchanged. `recall` is the line that follows each truncation indicator.
    """
    if is_signed(message) or not message.tool_calls:
        return message
    calls = tuple(_shorten_call(call, cap, count, memo, recall) for call in message.tool_calls)
    if all(new is old for new, old in zip(calls, message.tool_calls, strict=True)):
        return message
    return replace(message, tool_calls=calls)


def _shorten_call(call: ToolCall, cap: int, count: CountText, memo: CountMemo, recall: str) -> ToolCall:
    arguments = memo.cuts.get(
        call.arguments,
        ("arguments", cap, count, recall),
        lambda: _cut_json(call.arguments, cap, count, memo, recall),
        len,
    )
    return call if arguments == call.arguments else replace(call, arguments=arguments)


def _cut_json(arguments: str, cap: int, count: CountText, memo: CountMemo, recall: str) -> str:
    """Return `arguments` with long values cut; unchanged if they are no JSON object or would grow."""
    if count(arguments) <= cap:
        return arguments
    try:
        values = json.loads(arguments)
        shorter = _cut_values(values, cap, count, memo, recall) if isinstance(values, dict) else arguments
    except (ValueError, RecursionError):
        return arguments
    return shorter if len(shorter) < len(arguments) else arguments


def _cut_values(values: dict[str, Json], cap: int, count: CountText, memo: CountMemo, recall: str) -> str:
    # escaping makes values longer: they may fit the cap as text, exceed it as JSON, and must shrink all the
    # same
    value_cap, shorter = min(cap, _max_tokens(values, count)), ""
    for _ in range(_ATTEMPTS):
        shorter = _as_json(
            {key: _cut_value(value, value_cap, count, memo, recall) for key, value in values.items()}
        )
        tokens = count(shorter)
        if tokens <= cap:
            break
        # JSON escaping takes extra room, and several values share the cap
        value_cap = max(1, min(value_cap - 1, int(value_cap * 0.97 * cap / tokens)))
    return shorter


def _max_tokens(value: Json, count: CountText) -> int:
    """Return the token count of the longest text in `value`."""
    match value:
        case str():
            return count(value)
        case list():
            return max((_max_tokens(item, count) for item in value), default=0)
        case dict():
            return max((_max_tokens(item, count) for item in value.values()), default=0)
        case _:
            return 0


def _as_json(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # a lone surrogate can be sent only as an escape
        return json.dumps(value)
    return text


def _cut_value(value: Json, cap: int, count: CountText, memo: CountMemo, recall: str) -> Json:
    match value:
        case str() if count(value) > cap:
            shorter = truncate_text(value, cap, "head", count, memo, recall=recall)
            return shorter if len(shorter) < len(value) else value
        case list():
            return [_cut_value(item, cap, count, memo, recall) for item in value]
        case dict():
            return {key: _cut_value(item, cap, count, memo, recall) for key, item in value.items()}
        case _:
            return value
