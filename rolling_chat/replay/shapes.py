"""JSON as people have it, and messages whose fields are not of the format's types."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from rolling_chat.messages import Json, JsonObject

_TEXT_FIELDS = ("tool_call_id", "name")


def decode(text: bytes) -> Json:
    """Read one JSON value; NaN and infinities, which JSON has not, become null.

    Raises ValueError for what is none, however deep or wrongly encoded.
    """
    try:
        return json.loads(text, parse_constant=_nothing, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def sound_message(message: JsonObject) -> JsonObject:
    """`message` with every field of the format of the format's type; itself where all are.

    What a message says is kept as JSON text where a text belongs. Order and pairing are not looked
    at: those are the pipeline's to repair.
    """
    changes: dict[str, Json] = {}
    if not isinstance(message.get("role"), str):
        changes["role"] = "user"
    content = message.get("content")
    if isinstance(content, list):
        if not all(isinstance(part, Mapping) for part in content):
            changes["content"] = [part if isinstance(part, Mapping) else _text_part(part) for part in content]
    elif content is not None and not isinstance(content, str):
        changes["content"] = as_text(content)
    for field in _TEXT_FIELDS:
        value = message.get(field)
        if value is not None and not isinstance(value, str):
            changes[field] = as_text(value)
    calls = message.get("tool_calls")
    if calls is not None and (sound := _sound_calls(calls)) != calls:
        changes["tool_calls"] = sound
    return {**message, **changes} if changes else message


def as_text(value: Json) -> str:
    """A text as it is, anything else as JSON text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _sound_calls(calls: Json) -> list[Json]:
    if not isinstance(calls, list):
        return []
    return [_sound_call(call) for call in calls if isinstance(call, Mapping)]


def _sound_call(call: JsonObject) -> JsonObject:
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    arguments, name, call_id = function.get("arguments"), function.get("name"), call.get("id")
    return {
        **call,
        "id": "" if call_id is None else as_text(call_id),
        "function": {
            **function,
            "name": "" if name is None else as_text(name),
            "arguments": "{}" if arguments is None else as_text(arguments),
        },
    }


def _text_part(part: Json) -> dict[str, Any]:
    return {"type": "text", "text": as_text(part)}


def _nothing(_: str) -> None:
    return None


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None
