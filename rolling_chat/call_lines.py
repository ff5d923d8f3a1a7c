"""Tool calls formatted for people, one line each."""

from __future__ import annotations

import json
from collections.abc import Mapping

from rolling_chat.messages import ToolCall
from rolling_chat.permissions.path_patterns import FILE_TOOLS
from rolling_chat.todo_list import list_of_call

_IN_THE_DIFF = frozenset({"old", "new", "content", "edits"})
_FIRST_ARGUMENTS = ("command", "path", "pattern", "query", "url", "name", "prompt")


def describe_call(call: ToolCall) -> str:
    """Describe a tool call on one line: its name, its main argument, the others as `key=value`."""
    if (todo := list_of_call(call)) is not None:
        return f"{call.name} {todo.line}"
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return f"{call.name} {call.arguments}"
    if not isinstance(arguments, Mapping):
        return f"{call.name} {call.arguments}"
    main = [key for key in _FIRST_ARGUMENTS if key in arguments][:1]
    shown_below = _IN_THE_DIFF if call.name in FILE_TOOLS else frozenset()
    rest = [key for key in arguments if key not in main and key not in shown_below]
    parts = [call.name, *(_plain(arguments[key]) for key in main)]
    parts += [f"{key}={_plain(arguments[key])}" for key in rest]
    return " ".join(parts)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
