"""move_file and delete_file: move or delete a file."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.messages import Json, JsonObject
from rolling_chat.text import printable
from rolling_chat.tools.base import ToolContext, ToolError, ToolResult, function_schema, read_text
from rolling_chat.tools.confine import relative_name
from rolling_chat.tools.editing import PreparedEdit
from rolling_chat.tools.file_changes import FileChange, FileVersion, locate, read_version


@dataclass(frozen=True, slots=True)
class MoveFile:
    """The tool `move_file(path, to)`."""

    name: str = "move_file"
    needs_permission: bool = True
    only_reads: bool = False

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        return function_schema(
            self.name,
            "Move or rename a file to a path that is free.",
            {"path": {"type": "string"}, "to": {"type": "string"}},
            required=("path", "to"),
        )

    def describe(self, arguments: JsonObject) -> str:
        """Return both paths."""
        return f"{self.name} {arguments.get('path')} to {arguments.get('to')}"

    def prepare(self, arguments: JsonObject, context: ToolContext) -> PreparedEdit:
        """Return the change that the call would make. Raises ToolError if the new path exists."""
        source, target = (locate(read_text(arguments, key), context) for key in ("path", "to"))
        moved = _existing(source, arguments, context)
        if source == target:
            raise ToolError("Nothing would change: both paths are the same.")
        if read_version(target, context) is not None:
            raise ToolError(f"{relative_name(target, context)} exists already: delete it first.")
        folder = context.folder.resolve()
        # create the new file first, so that nothing is lost if that fails
        changes = FileChange(target, None, moved.rewritten(moved.data)), FileChange(source, moved, None)
        line = f"Moved {relative_name(source, context)} to {relative_name(target, context)}"
        return PreparedEdit(changes, line, folder, context.knows(source, moved.sha256))

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Move the file."""
        return await asyncio.to_thread(lambda: self.prepare(arguments, context).make(context))


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """The tool `delete_file(path)`."""

    name: str = "delete_file"
    needs_permission: bool = True
    only_reads: bool = False

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        return function_schema(
            self.name,
            "Delete one file.",
            {"path": {"type": "string"}},
            required=("path",),
        )

    def describe(self, arguments: JsonObject) -> str:
        """Return the file that would be deleted."""
        return f"{self.name} {arguments.get('path')}"

    def prepare(self, arguments: JsonObject, context: ToolContext) -> PreparedEdit:
        """Return the change that the call would make. Raises ToolError if there is no such file."""
        path = locate(read_text(arguments, "path"), context)
        change = FileChange(path, _existing(path, arguments, context), None)
        return PreparedEdit((change,), f"Deleted {relative_name(path, context)}", context.folder.resolve())

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Delete the file."""
        return await asyncio.to_thread(lambda: self.prepare(arguments, context).make(context))


def _existing(path: Path, arguments: JsonObject, context: ToolContext) -> FileVersion:
    found = read_version(path, context)
    if found is None:
        named = printable(read_text(arguments, "path"), 200)
        raise ToolError(f"There is no “{named}” in the working folder.")
    return found
