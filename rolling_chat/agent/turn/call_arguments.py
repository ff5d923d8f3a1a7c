"""Parse the arguments of a tool call from the JSON that the model wrote."""

from __future__ import annotations

import json

from rolling_chat.lenient_json import read_json
from rolling_chat.messages import JsonObject, ToolCall
from rolling_chat.tools import Tool, ToolError


def parse_arguments(call: ToolCall, tool: Tool, *, cut: bool = False) -> JsonObject:
    """Return a call's arguments as an object. Raises ToolError, which describes the expected arguments."""
    text = call.arguments.strip()
    if not text and not cut:
        return {}
    try:
        arguments = read_json(text)
    except ValueError as error:
        if cut:
            raise ToolError(
                f"Not run: your reply reached its output limit in the middle of this call of {tool.name}. "
                "Make it again, with less in it."
            ) from None
        where = (
            f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else str(error)
        )
        raise ToolError(
            f"The arguments of {tool.name} are not valid JSON ({where}). {_shape(tool)}"
        ) from None
    if not isinstance(arguments, dict):
        raise ToolError(f"The arguments of {tool.name} must be a JSON object. {_shape(tool)}")
    return arguments


def _shape(tool: Tool) -> str:
    parameters = tool.schema["function"]["parameters"]
    required = parameters.get("required", [])
    named = [
        f"{name} ({schema.get('type', 'any')}{'' if name in required else ', optional'})"
        for name, schema in parameters.get("properties", {}).items()
    ]
    return f"It takes one JSON object with: {', '.join(named) or 'nothing'}."
