"""command_output: shows the output and the state of a background command, and ends it."""

from __future__ import annotations

from dataclasses import dataclass

from rolling_chat.messages import Json, JsonObject
from rolling_chat.tools.background import BACKGROUND
from rolling_chat.tools.base import ToolContext, ToolError, ToolResult, function_schema, read_flag, read_text
from rolling_chat.tools.decoding import decode


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """The tool `command_output(id, end)`, for commands that the same session has started."""

    name: str = "command_output"
    needs_permission: bool = False
    only_reads: bool = False

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        return function_schema(
            self.name,
            "Get what a background command wrote since you last asked. Without an id: list them.",
            {
                "id": {"type": "string"},
                "end": {"type": "boolean", "description": "End it first."},
            },
        )

    def describe(self, arguments: JsonObject) -> str:
        """Return the id, and whether the call ends the command."""
        wanted = read_text(arguments, "id", default="")
        return f"{wanted} end" if wanted and read_flag(arguments, "end") else wanted

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Return the new output and the state of a command, after ending it if requested."""
        wanted, owner = read_text(arguments, "id", default=""), context.session
        if not wanted:
            listed = [f"{one}: {one.state}" for one in BACKGROUND.all(owner)]
            return ToolResult("\n".join(listed) or "There are no background commands.")
        command = BACKGROUND.find(wanted, owner)
        if command is None:
            known = ", ".join(one.id for one in BACKGROUND.all(owner)) or "there are none"
            raise ToolError(f"There is no background command {wanted!r}. The ids are: {known}.")
        if read_flag(arguments, "end"):
            await BACKGROUND.end(command)
        new, left_out = await command.take_new()
        text = decode(new).rstrip("\n") or "[no new output]"
        gap = [f"[… {left_out:,} bytes left out …]"] if left_out else []
        return ToolResult("\n".join([*gap, text, f"[{command.state}]"]))
