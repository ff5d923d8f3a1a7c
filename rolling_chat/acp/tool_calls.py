"""Tool calls in the form of the protocol: kind, title, locations in files, input and output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from acp.schema import ToolCallLocation, ToolCallProgress, ToolCallStart, ToolCallStatus, ToolKind

from rolling_chat.acp.content import (
    CallContent,
    cleaned,
    diff_content,
    fenced_content,
    shortened,
)
from rolling_chat.acp.diffs import read_diff
from rolling_chat.api import parsed_arguments
from rolling_chat.call_lines import describe_call
from rolling_chat.message_words import shown_instead
from rolling_chat.messages import Ending, Json, Message, ToolCall
from rolling_chat.text import one_line, visible

_KINDS: Mapping[str, ToolKind] = {
    "read_file": "read",
    "list_files": "read",
    "outline": "read",
    "command_output": "read",
    "search_files": "search",
    "recall": "search",
    "edit_file": "edit",
    "multi_edit": "edit",
    "write_file": "edit",
    "move_file": "move",
    "delete_file": "delete",
    "run_command": "execute",
    "fetch_url": "fetch",
    "todo": "think",
}
_MAX_TITLE = 200
_PATHS = ("path", "to")


def call_id(reply_id: str, index: int) -> str:
    """Return the id of a reply's tool call; the model's own ids may repeat."""
    return f"{reply_id}-{index}"


def kind_of(call: ToolCall) -> ToolKind:
    """Return the kind of a call, from which clients choose an icon."""
    return _KINDS.get(call.name, "other")


def title_of(call: ToolCall) -> str:
    """Return a call on one line."""
    return one_line(describe_call(call), _MAX_TITLE)


def started(call: ToolCall, id: str, folder: Path, status: ToolCallStatus = "pending") -> ToolCallStart:
    """Return the update that announces a call."""
    arguments = parsed_arguments(call.arguments)
    return ToolCallStart(
        session_update="tool_call",
        tool_call_id=id,
        title=title_of(call),
        kind=kind_of(call),
        status=status,
        locations=locations_of(arguments, folder) or None,
        raw_input=cleaned(arguments),
    )


def ended(id: str, message: Message, folder: Path) -> ToolCallProgress:
    """Return the update with a call's result; `message.ending` says how it ended."""
    diff = shown_instead(message)
    return ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=id,
        status="completed" if message.ending is Ending.COMPLETE else "failed",
        content=_content_of(message.text, diff, folder),
        locations=_changed_locations(diff, folder) or None,
        raw_output={"text": cleaned(message.text), "ending": message.ending.value},
    )


def running(id: str, newest: str = "") -> ToolCallProgress:
    """Return the update for a running call, with the newest lines of its output, if any."""
    content: list[CallContent] | None = [fenced_content(newest)] if newest else None
    return ToolCallProgress(
        session_update="tool_call_update", tool_call_id=id, status="in_progress", content=content
    )


def locations_of(arguments: Json, folder: Path) -> list[ToolCallLocation]:
    """Return the locations in files that a call names."""
    if not isinstance(arguments, Mapping):
        return []
    paths = [arguments[key] for key in _PATHS if isinstance(arguments.get(key), str)]
    start = arguments.get("start")
    line = start if isinstance(start, int) and not isinstance(start, bool) and start > 0 else None
    return [ToolCallLocation(path=_whole(path, folder), line=line) for path in paths if path]


def _content_of(text: str, diff: str, folder: Path) -> list[CallContent]:
    if diff:
        return diff_content(diff, folder)
    return [fenced_content(visible(shortened(text)))]


def _changed_locations(diff: str, folder: Path) -> list[ToolCallLocation]:
    read = read_diff(diff) if diff else None
    hunks = read.hunks if read is not None else ()
    return [ToolCallLocation(path=_whole(hunk.name, folder), line=hunk.line) for hunk in hunks]


def _whole(path: str, folder: Path) -> str:
    return visible(str(folder / path))
