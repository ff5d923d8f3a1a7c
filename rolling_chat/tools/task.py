"""task: has a second agent, with a context of its own, do a part of the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rolling_chat.lenient_json import read_json
from rolling_chat.messages import Json, JsonObject, ToolCall
from rolling_chat.task_record import TASK
from rolling_chat.tools.base import (
    TaskOrder,
    ToolContext,
    ToolError,
    ToolResult,
    function_schema,
    read_text,
)

_DESCRIPTION = (
    "Give a search or check of many steps to a second agent, to keep its details out of your context. It "
    "knows only `prompt`; you get only its answer. `tools`: those it may use, by default all that only read."
)


@dataclass(frozen=True, slots=True)
class Task:
    """The tool `task(prompt, tools, model)`; `models` are permitted besides the session's own."""

    models: tuple[str, ...] = ()
    name: str = TASK
    needs_permission: bool = False  # its own calls need permission
    only_reads: bool = False  # depends on the tools of the call

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        properties: dict[str, Json] = {
            "prompt": {"type": "string"},
            "tools": {"type": "array", "items": {"type": "string"}},
        }
        if self.models:
            properties["model"] = {"type": "string", "enum": list(self.models)}
        return function_schema(self.name, _DESCRIPTION, properties, required=("prompt",))

    def describe(self, arguments: JsonObject) -> str:
        """Return the whole task: the prompt, the tools and the model."""
        order = read_order(arguments)
        parts = [f"{self.name} {order.prompt}"]
        if order.tools is not None:
            parts.append(f"tools: {', '.join(order.tools) or 'none'}")
        if order.model:
            parts.append(f"model: {order.model}")
        return "\n".join(parts)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Have the agent run the task, and return its answer."""
        if context.run_task is None:
            raise ToolError("There is nobody here to give a task to: do it yourself.")
        return await context.run_task(read_order(arguments))


def read_order(arguments: JsonObject) -> TaskOrder:
    """Read the arguments of a call. Raises ToolError."""
    prompt = read_text(arguments, "prompt").strip()
    if not prompt:
        raise ToolError("The argument 'prompt' is empty: say what the task is.")
    model = read_text(arguments, "model", default="").strip()
    return TaskOrder(prompt, _names(arguments.get("tools")), model)


def read_order_of(call: ToolCall) -> TaskOrder:
    """Read the order in a call of the tool. Raises ToolError."""
    try:
        arguments = read_json(call.arguments or "{}")
    except ValueError as error:
        raise ToolError(f"The arguments are not JSON ({error}).") from error
    return read_order(arguments if isinstance(arguments, dict) else {})


def _names(given: object) -> tuple[str, ...] | None:
    """Return the tools named in a call; None if there are none. Models also write them as one text."""
    match given:
        case None | "":
            return None
        case str():
            return tuple(name.strip() for name in given.split(",") if name.strip())
        case Sequence() if all(isinstance(name, str) for name in given):
            return tuple(dict.fromkeys(given))
        case _:
            raise ToolError("The argument 'tools' must be a list of names of tools.")
