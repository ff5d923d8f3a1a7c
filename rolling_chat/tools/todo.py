"""todo: keeps the model's to-do list for a long task, which the user sees."""

from __future__ import annotations

from dataclasses import dataclass

from rolling_chat.messages import Json, JsonObject
from rolling_chat.todo_list import TODO, TodoList, parse_items
from rolling_chat.tools.base import ToolContext, ToolError, ToolResult, function_schema


@dataclass(frozen=True, slots=True)
class Todo:
    """The tool `todo(items)`; the call itself contains the list (see `rolling_chat.todo_list`)."""

    name: str = TODO
    needs_permission: bool = False
    only_reads: bool = False  # a later list replaces an earlier one

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        return function_schema(
            self.name,
            "Show the user your to-do list of a long task, whole at every change: "
            "'[ ] pending', '[>] doing', '[x] done'.",
            {"items": {"type": "array", "items": {"type": "string"}}},
            required=("items",),
        )

    def describe(self, arguments: JsonObject) -> str:
        """Return how much is done, and the current item."""
        try:
            return f"{self.name} {_read(arguments).line}"
        except ToolError:
            return self.name

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:  # noqa: ARG002
        """Accept the list; the call itself contains it."""
        todo = _read(arguments)
        return ToolResult(f"[{todo.done} of {len(todo.items)} done]", shown=todo.text)


def _read(arguments: JsonObject) -> TodoList:
    try:
        return parse_items(arguments.get("items"))
    except ValueError as error:
        raise ToolError(f"The argument 'items' {error}.") from None
