"""The names of tools in hooks: ours, and those of other agents that the same hooks were written for."""

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
_FILE_PATH = "file_path"  # what others call the path of a file, and make absolute


def matches(matcher: str, name: str) -> bool:
    """Return whether a matcher means what has that name; empty means everything."""
    return not matcher or any(re.fullmatch(matcher, one) for one in (name, *_ALSO_CALLED.get(name, ())))


def given_input(arguments: JsonObject, folder: Path) -> dict[str, Json]:
    """Return the arguments of a call as a hook is given them."""
    path = arguments.get("path")
    if not isinstance(path, str) or _FILE_PATH in arguments:
        return dict(arguments)
    return {**arguments, _FILE_PATH: str(folder / path)}


def taken_input(updated: JsonObject, arguments: JsonObject, folder: Path) -> dict[str, Json]:
    """Return the arguments that a hook wants a call to have, without what was added for it."""
    taken = dict(updated)
    if _FILE_PATH not in arguments:
        added = taken.pop(_FILE_PATH, None)
        before = given_input(arguments, folder).get(_FILE_PATH)
        if isinstance(added, str) and added != before and taken.get("path") == arguments.get("path"):
            taken["path"] = added
    return taken
