"""Reading the arguments of a call: lenient where the meaning is plain, else one line of what is right."""

from __future__ import annotations

from rolling_chat.messages import JsonObject
from rolling_chat.tools.base import ToolError


def read_text(arguments: JsonObject, name: str, default: str | None = None) -> str:
    """The text argument `name`, which must be there and not blank unless there is a default."""
    value = arguments.get(name)
    if value is None or value == "":
        if default is None:
            raise ToolError(f"The argument {name!r} is missing: give it as text.")
        return default
    if not isinstance(value, str):
        raise ToolError(f"The argument {name!r} must be text, not {type(value).__name__}.")
    return value


def read_count(arguments: JsonObject, name: str, *, default: int | None = None, least: int = 1) -> int | None:
    """The whole number `name`, at least `least`; models also write it as "12" or 12.0."""
    value = arguments.get(name)
    if value is None or value == "":
        return default
    try:
        number = int(value) if isinstance(value, str) else _whole(value)
    except ValueError:
        raise ToolError(f"The argument {name!r} must be a whole number, not {_short(value)}.") from None
    if number < least:
        raise ToolError(f"The argument {name!r} must be {least} or more, not {number}.")
    return number


def _whole(value: object) -> int:
    match value:
        case bool():
            raise ValueError(value)
        case int():
            return value
        case float() if value.is_integer():
            return int(value)
        case _:
            raise ValueError(value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
