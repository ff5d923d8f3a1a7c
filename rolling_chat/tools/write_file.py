"""write_file: creates a new file, or replaces the contents of one that was read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from rolling_chat.messages import Json, JsonObject
from rolling_chat.tools.base import ToolContext, ToolError, ToolResult, function_schema, read_text
from rolling_chat.tools.confine import relative_name, resolve_inside
from rolling_chat.tools.editing import PreparedEdit
from rolling_chat.tools.file_changes import FileChange, FileVersion, locate, read_version
from rolling_chat.tools.file_text import new_file_text, read_file_text


@dataclass(frozen=True, slots=True)
class WriteFile:
    """The tool `write_file(path, content)`."""

    name: str = "write_file"
    needs_permission: bool = True
    only_reads: bool = False

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        return function_schema(
            self.name,
            "Write a whole file; one that exists must be read first.",
            {"path": {"type": "string"}, "content": {"type": "string"}},
            required=("path", "content"),
        )

    def describe(self, arguments: JsonObject) -> str:
        """Return the file that would be written."""
        return f"{self.name} {arguments.get('path')}"

    def prepare(self, arguments: JsonObject, context: ToolContext) -> PreparedEdit:
        """Return the change that the call would make. Raises ToolError if the existing file was not read."""
        content = arguments.get("content")
        if not isinstance(content, str):
            raise ToolError("The argument 'content' is missing: give all of the file's text.")
        path = locate(read_text(arguments, "path"), context)
        before = read_version(path, context, writable=True)
        if before is not None and before.is_link:
            path = resolve_inside(read_text(arguments, "path"), context)
            before = read_version(path, context, writable=True)
        name = relative_name(path, context)
        if before is None:
            after = FileVersion(new_file_text().rewritten(content))
            line = f"Wrote the new file {name}"
        else:
            _require_read(str(path), name, before, context)
            after = before.rewritten(read_file_text(before.data, name).rewritten(content))
            line = f"Wrote {name}"
        if before is not None and after.data == before.data:
            raise ToolError(f"Nothing would change: {name} has this content already.")
        return PreparedEdit((FileChange(path, before, after),), line, context.folder.resolve())

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Write the file."""
        return await asyncio.to_thread(lambda: self.prepare(arguments, context).make(context))


def _require_read(path: str, name: str, now: FileVersion, context: ToolContext) -> None:
    """Raise ToolError if a file was not read in this session, or has changed since."""
    seen = context.last_seen(path) if context.last_seen is not None else None
    if seen is None:
        raise ToolError(
            f"{name} exists and was not read in this session: read it first, all of it, or use edit_file."
        )
    if seen != now.sha256:  # a file that is too large to be hashed is also too large to be written
        raise ToolError(f"{name} has changed since it was read: read it again, then write it.")
