"""Prepare and make the file changes of a tool call, so that they can be undone."""

from __future__ import annotations

import asyncio
import logging

from rolling_chat.agent.file_undo import keep_edit
from rolling_chat.agent.stops import finished
from rolling_chat.messages import Ending, JsonObject
from rolling_chat.sessions.kept_files import KeptFiles
from rolling_chat.sessions.records import StoreError
from rolling_chat.tools import Tool, ToolContext, ToolError, ToolResult
from rolling_chat.tools.editing import EditingTool, PreparedEdit

log = logging.getLogger("rolling_chat.agent.turn.edits")


async def prepare_edit(tool: Tool, arguments: JsonObject, context: ToolContext) -> PreparedEdit | None:
    """Return the file changes that a call would make; None for a tool that makes none. Raises ToolError."""
    if not isinstance(tool, EditingTool):
        return None
    return await asyncio.to_thread(_prepare, tool, arguments, context)


async def make_edit(
    edit: PreparedEdit, context: ToolContext, kept_files: KeptFiles, reply_id: str
) -> ToolResult:
    """Make the change that was shown, which an undo of the reply takes back.

    A thread cannot be stopped halfway, so a stop takes effect only after the result is known.
    """
    making = asyncio.create_task(asyncio.to_thread(_make, edit, context, kept_files, reply_id))
    await finished(making)
    return making.result()


def _prepare(tool: EditingTool, arguments: JsonObject, context: ToolContext) -> PreparedEdit:
    """Prepare a change and its diff. Raises ToolError."""
    try:
        edit = tool.prepare(arguments, context)
        edit.diff  # noqa: B018 - computed in this thread, for the question and the transcript
    except ToolError:
        raise
    except Exception as error:
        log.exception("%s broke", tool.name)
        raise ToolError(f"{tool.name} broke: {type(error).__name__}. Try another way.") from None
    return edit


def _make(edit: PreparedEdit, context: ToolContext, kept_files: KeptFiles, reply_id: str) -> ToolResult:
    """Keep the original contents of the files for an undo, then change them."""
    try:
        forget = keep_edit(kept_files, reply_id, edit)
    except StoreError as error:
        return ToolResult(f"Nothing was changed: it could not be kept for an undo ({error}).", Ending.FAILED)
    try:
        return edit.make(context)
    except ToolError as error:
        forget()
        return ToolResult(str(error), Ending.FAILED)
    except Exception as error:  # the originals stay kept: some files may have been changed
        log.exception("a change of files broke")
        return ToolResult(f"The change broke: {type(error).__name__}. Look at the files.", Ending.FAILED)
