"""The tool names and inputs that hooks see: ours, and those of the agents that hooks were written for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rolling_chat.messages import Json, JsonObject

_ALSO_CALLED: Mapping[str, tuple[str, ...]] = {
    "run_command": ("Bash",),
    "edit_file": ("Edit",),
    "multi_edit": ("Edit", "MultiEdit"),
    "write_file": ("Write",),
    "read_file": ("Read",),
    "list_files": ("LS", "Glob"),
    "search_files": ("Grep",),
    "fetch_url": ("WebFetch",),
    "todo": ("TodoWrite",),
    "skill": ("Skill",),
    "task": ("Task", "Agent"),
}
_FILE_PATH = "file_path"  # the name of a file's path in other agents, where it is absolute


def matches(matcher: str, name: str) -> bool:
    """Return whether a matcher matches a name; an empty one matches everything."""
    return not matcher or any(re.fullmatch(matcher, one) for one in (name, *_ALSO_CALLED.get(name, ())))


def hook_input(arguments: JsonObject, folder: Path) -> dict[str, Json]:
    """Return the arguments of a call as passed to a hook."""
    path = arguments.get("path")
    if not isinstance(path, str) or _FILE_PATH in arguments:
        return dict(arguments)
    return {**arguments, _FILE_PATH: str(folder / path)}


def arguments_from(updated: JsonObject, arguments: JsonObject, folder: Path) -> dict[str, Json]:
    """Return the arguments for a call from the input that a hook has `updated`."""
    result = dict(updated)
    if _FILE_PATH not in arguments:
        added = result.pop(_FILE_PATH, None)
        before = hook_input(arguments, folder).get(_FILE_PATH)
        if isinstance(added, str) and added != before and result.get("path") == arguments.get("path"):
            result["path"] = added
    return result
