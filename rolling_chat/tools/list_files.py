"""list_files: lists the contents of a folder."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.messages import Json, JsonObject
from rolling_chat.tools.base import ToolContext, ToolError, ToolResult, function_schema, read_text
from rolling_chat.tools.confine import open_folder, relative_name, resolve_inside
from rolling_chat.tools.decoding import show_name

_MAX_NAMES = 20_000  # names in one result

_DESCRIPTION = "List a folder."


@dataclass(frozen=True, slots=True)
class ListFiles:
    """The tool `list_files(path)`."""

    name: str = "list_files"
    needs_permission: bool = False
    only_reads: bool = True

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        return function_schema(self.name, _DESCRIPTION, {"path": {"type": "string"}})

    def describe(self, arguments: JsonObject) -> str:
        """Return the folder to list."""
        return f"list_files {arguments.get('path') or '.'}"

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Return one name per line, sorted; folders end in "/", links show their target."""
        return await asyncio.to_thread(_list, read_text(arguments, "path", default="."), context)


def _list(path: str, context: ToolContext) -> ToolResult:
    return list_folder(resolve_inside(path, context), context)


def list_folder(folder: Path, context: ToolContext) -> ToolResult:
    """List a folder from `resolve_inside`, or one outside that the user approved. Raises ToolError."""
    name = relative_name(folder, context)
    try:
        opened = open_folder(folder, context)
        try:
            with os.scandir(opened) as entries:
                names = sorted(_line(entry, opened) for entry in entries)
        finally:
            if isinstance(opened, int):
                os.close(opened)
    except NotADirectoryError:
        raise ToolError(f"{name} is a file, not a folder; read_file reads it.") from None
    except OSError as error:
        raise ToolError(f"{name} cannot be listed: {(error.strerror or str(error)).lower()}.") from None
    if not names:
        return ToolResult(f"[{name} is empty]")
    if len(names) > _MAX_NAMES:
        left_out = f"[{len(names) - _MAX_NAMES} more names left out; search_files finds text in them]"
        names = [*names[:_MAX_NAMES], left_out]
    return ToolResult("\n".join(names))


def _line(entry: os.DirEntry[str], folder: int | str) -> str:
    name = show_name(entry.name)
    if entry.is_symlink():
        return f"{name} -> {_target(entry, folder)}"
    return f"{name}/" if entry.is_dir(follow_symlinks=False) else name


def _target(entry: os.DirEntry[str], folder: int | str) -> str:
    where = folder if isinstance(folder, int) else None
    try:
        # the name if the folder is open, else the whole path
        return show_name(os.readlink(entry.path, dir_fd=where))
    except OSError:
        return "?"
