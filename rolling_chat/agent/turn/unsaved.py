"""Files with unsaved changes in an editor: tools read the editor's text, and must not change the files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

from rolling_chat.events import ReadUnsaved
from rolling_chat.messages import JsonObject
from rolling_chat.permissions.path_patterns import FILE_TOOLS
from rolling_chat.tools import Tool, ToolContext, ToolError
from rolling_chat.tools.confine import relative_name, resolve_parent
from rolling_chat.tools.read_file import READ_FILE

_PATHS = ("path", "to")


async def find_unsaved(
    read: ReadUnsaved | None, tool: Tool, arguments: JsonObject, context: ToolContext
) -> Mapping[Path, str]:
    """Return the editor's texts of a call's files with unsaved changes, by their resolved paths.

    Raises ToolError if the tool would change one of them.
    """
    if read is None or (tool.name not in FILE_TOOLS and tool.name != READ_FILE):
        return {}
    paths = await asyncio.to_thread(lambda: list(_paths_in(arguments, context)))
    texts = [(path, await read(path)) for path in paths]
    unsaved = {path: text for path, text in texts if text is not None}
    if unsaved and tool.name in FILE_TOOLS:
        names = ", ".join(relative_name(path, context) for path in unsaved)
        raise ToolError(
            f"Nothing was changed: {names} has changes in the user's editor that are not saved. "
            "Ask the user to save, then read it again."
        )
    return unsaved


def _paths_in(arguments: JsonObject, context: ToolContext) -> Iterator[Path]:
    """Yield the resolved paths of a call that are inside the folder; the tool itself rejects others."""
    for key in _PATHS:
        named = arguments.get(key)
        if not isinstance(named, str) or not named:
            continue
        try:
            path = resolve_parent(named, context)
        except ToolError:
            continue
        resolved = path.resolve()
        if resolved.is_relative_to(context.folder.resolve()):
            yield resolved
