"""Files that an editor has open with changes that are not saved: read as they are there, and not changed."""

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
    """Return the texts of those files of a call that are not saved, by their paths without symlinks.

    Raises ToolError for a tool that would change one of them.
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
    """Yield the paths of a call that are inside the folder; the tool says what is wrong with others."""
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
