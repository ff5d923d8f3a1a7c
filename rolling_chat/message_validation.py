"""Validate messages from other programs: convert every field to its type in OpenAI's format.

Order and pairing are not checked; the pipeline repairs those.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

UNREADABLE = "[not readable]"
"""Replaces a value that cannot be written as JSON."""

_TEXT_FIELDS = ("tool_call_id", "name")
_FORMAT_FIELDS = frozenset({"role", "content", "tool_calls", *_TEXT_FIELDS})
# Python's own writer fails on deeper nesting, and messages are nested further in requests.
_MAX_DEPTH = 100
# Python refuses to write integers of more than 4,300 digits.
_MAX_BITS = 14_000


def normalize_role(message: Mapping[str, Any]) -> str:
    """Return the role of a message; `user` if it is not text, `system` for OpenAI's `developer`."""
    role = message.get("role")
    if not isinstance(role, str):
        return "user"
    return "system" if role == "developer" else role


def normalize_message(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert every field of a message to the format's type; return the same object if none needs it.

    A wrong value in a text field is kept as JSON text. Only the assistant's messages keep tool calls, as no
    provider accepts them elsewhere.
    """
    changes: dict[str, Any] = {}
    role = normalize_role(message)
    if not isinstance(message.get("role"), str):
        changes["role"] = role
    content = message.get("content")
    if isinstance(content, list | tuple):
        if not all(map(_is_part, content)):
            changes["content"] = [part if _is_part(part) else _text_part(part) for part in content]
    elif content is not None and not isinstance(content, str):
        changes["content"] = as_text(content)
    for field in _TEXT_FIELDS:
        value = message.get(field)
        if value is not None and not isinstance(value, str):
            changes[field] = as_text(value)
    for field, value in message.items():
        if field not in _FORMAT_FIELDS and not _can_be_written(value):
            changes[field] = UNREADABLE
    calls = message.get("tool_calls")
    normalized = _normalize_calls(calls) if role == "assistant" and calls is not None else None
    if normalized is not calls or normalized == []:
        changes["tool_calls"] = normalized
    if not changes:
        return message
    whole = {**message, **changes}
    if "tool_calls" in changes and not normalized:
        del whole["tool_calls"]  # providers refuse an empty list
    return whole


def as_text(value: Any) -> str:
    """Return a string unchanged, anything else as JSON text."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str) if _can_be_written(value) else UNREADABLE
    except (TypeError, ValueError):
        return UNREADABLE


def _normalize_calls(calls: Any) -> Any:
    """Return a list of valid calls; `calls` itself if it is one."""
    if not isinstance(calls, list | tuple):
        return []
    normalized = [_normalize_call(call) for call in calls if isinstance(call, Mapping)]
    is_same = len(normalized) == len(calls) and all(
        new is old for new, old in zip(normalized, calls, strict=True)
    )
    return calls if is_same else normalized


def _normalize_call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    fields = {"name": function.get("name"), "arguments": function.get("arguments")}
    call_id = call.get("id")
    if isinstance(call_id, str) and all(isinstance(value, str) for value in fields.values()):
        return call
    if isinstance(call_id, str) and "function" not in call and isinstance(call.get("type"), str):
        return call  # a provider's own kind of call
    return {
        **call,
        "id": "" if call_id is None else as_text(call_id),
        "function": {
            **function,
            "name": "" if fields["name"] is None else as_text(fields["name"]),
            "arguments": "{}" if fields["arguments"] is None else as_text(fields["arguments"]),
        },
    }


def _is_part(part: Any) -> bool:
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        return False
    return (part["type"] != "text" or isinstance(part.get("text"), str)) and _can_be_written(part)


def _text_part(part: Any) -> dict[str, Any]:
    text = part.get("text") if isinstance(part, Mapping) else None
    return {"type": "text", "text": text if isinstance(text, str) else as_text(part)}


def _can_be_written(value: Any) -> bool:
    """Return whether `value` can be written as JSON; checks level by level, as recursion could overflow."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, Mapping):
                inner.extend(one.values())
            elif isinstance(one, list | tuple):
                inner.extend(one)
            elif isinstance(one, int) and one.bit_length() > _MAX_BITS:
                return False
        if not inner:
            return True
        level = inner
    return False
