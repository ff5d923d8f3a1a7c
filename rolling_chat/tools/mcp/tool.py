"""The tools of MCP servers, and the tool that finds those that are not offered directly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rolling_chat.messages import Json, JsonObject
from rolling_chat.tools.base import Tool, ToolContext, ToolError, ToolResult, function_schema, read_text
from rolling_chat.tools.mcp.definitions import Definition
from rolling_chat.tools.mcp.peer import ServerError
from rolling_chat.tools.mcp.results import as_result
from rolling_chat.tools.mcp.server import McpServer

SEARCH_TOOL = "mcp"
_MAX_FOUND = 8
_MAX_LISTED = 1_500  # characters of names in the description of the search tool


@dataclass(frozen=True, slots=True)
class ServerTool:
    """One tool of an MCP server. The server's claims, such as that it only reads, are not trusted."""

    server: McpServer
    definition: Definition
    needs_permission: bool = True
    only_reads: bool = False

    @property
    def name(self) -> str:
        """The name that the model calls."""
        return self.definition.name

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        return self.definition.schema

    def describe(self, arguments: JsonObject) -> str:
        """Return the server, the tool's own name, and the arguments exactly as sent."""
        what = f"{self.definition.own_name} of the MCP server {self.server.name}"
        return f"{what}\n{_canonical(arguments)}"

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Call the tool. Raises ToolError if the server fails."""
        sent = json.loads(_canonical(arguments))
        on_output = context.on_output

        def progress(line: str) -> None:
            if on_output is not None:
                on_output(f"{line}\n".encode("utf-8", "replace"))

        try:
            result = await self.server.call(self.definition.own_name, sent, progress)
        except ServerError as error:
            raise ToolError(f"The MCP server {self.server.name} {error}.") from error
        return as_result(result, self.server.name)


@dataclass(frozen=True, slots=True)
class SearchTool:
    """Finds tools of MCP servers by words and calls them, if there are too many for every request."""

    tools: Sequence[ServerTool]
    name: str = SEARCH_TOOL
    needs_permission: bool = False
    only_reads: bool = False

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model, with as many names of its tools as fit."""
        return function_schema(
            SEARCH_TOOL,
            "More tools, of MCP servers. With search, returns those that fit best with their arguments; "
            f"with tool and arguments, calls one. There are: {self._listed()}",
            {
                "search": {"type": "string", "description": "words, or a tool's name"},
                "tool": {"type": "string", "description": "the name of the tool to call"},
                "arguments": {"type": "object", "description": "its arguments"},
            },
        )

    def describe(self, arguments: JsonObject) -> str:
        """Return the words that are searched for."""
        return f"search for {arguments.get('search', '')}"

    def find(self, name: str) -> ServerTool | None:
        """Return the tool with this name; None if there is none."""
        return next((tool for tool in self.tools if tool.name == name), None)

    def resolve(self, arguments: JsonObject) -> tuple[Tool, JsonObject] | None:
        """Return the tool to call and its arguments; None for a search. Raises ToolError."""
        name = arguments.get("tool")
        if not name:
            return None
        tool = self.find(str(name))
        if tool is None:
            raise ToolError(f"There is no tool {str(name)[:100]!r} here: find its name with search.")
        inner = arguments.get("arguments")
        if isinstance(inner, str):
            try:
                inner = json.loads(inner or "{}")
            except (ValueError, RecursionError):
                inner = None
        if inner is not None and not isinstance(inner, dict):
            raise ToolError(f"The arguments of {tool.name} must be a JSON object.")
        return tool, inner or {}

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:  # noqa: ARG002
        """Return the tools that match the words best, each with its schema."""
        wanted = read_text(arguments, "search").lower().split()
        ranked = sorted(
            (
                (score, -index, tool)
                for index, tool in enumerate(self.tools)
                if (score := _score(tool, wanted))
            ),
            key=lambda entry: entry[:2],
            reverse=True,
        )
        if not ranked:
            return ToolResult(f"No tool fits. There are: {self._listed()}")
        found = [tool.schema["function"] for _, _, tool in ranked[:_MAX_FOUND]]
        more = f"\n[{len(ranked) - _MAX_FOUND} more fit less]" if len(ranked) > _MAX_FOUND else ""
        return ToolResult("\n".join(json.dumps(one, ensure_ascii=False) for one in found) + more)

    def _listed(self) -> str:
        names = ", ".join(tool.name for tool in self.tools)
        if len(names) <= _MAX_LISTED:
            return names
        shown = names[:_MAX_LISTED].rpartition(", ")[0]
        return f"{shown} and {len(self.tools) - shown.count(', ') - 1} more"


def _score(tool: ServerTool, wanted: Sequence[str]) -> int:
    """Return how well a tool matches words: its name counts most, its arguments least."""
    function = tool.schema["function"]
    name, description = tool.name.lower(), str(function.get("description", "")).lower()
    arguments = json.dumps(function.get("parameters", {}), ensure_ascii=False).lower()
    return sum(
        8 * (word == name) + 4 * (word in name) + 2 * (word in description) + (word in arguments)
        for word in wanted
    )


def _canonical(arguments: JsonObject) -> str:
    """Return arguments as they are shown and sent. Raises ToolError for a number that JSON lacks."""
    try:
        return json.dumps(arguments, ensure_ascii=False, indent=2, allow_nan=False)
    except ValueError:
        raise ToolError("The arguments have a number that JSON does not have, such as NaN.") from None
