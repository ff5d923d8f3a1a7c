"""Patterns of paths in permission rules: `src/**`, `*.md`, `docs/notes.txt`.

Paths are relative to the working folder, with `/` between their parts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

FILE_TOOLS = frozenset({"edit_file", "multi_edit", "write_file", "move_file", "delete_file"})
"""The tools whose rules may name paths, relative to the working folder."""

# Files and folders that decide what runs by itself, now or later. Neither the policy `edits` nor a wildcard
# allows changes to them.
_PROTECTED_FOLDERS = frozenset(
    [
        ".git",
        ".github",
        ".hg",
        ".svn",
        ".jj",
        ".rolling-chat",
        ".agents",
        ".claude",
        ".ssh",
        ".config",
        ".vscode",
        ".idea",
        ".husky",
    ]
)
_PROTECTED_BELOW = ("/.local/bin/",)
_PROTECTED_FILES = frozenset(
    [
        "agents.md",
        "claude.md",
        ".envrc",
        ".gitconfig",
        ".gitmodules",
        ".mcp.json",
        ".bashrc",
        ".bash_aliases",
        ".bash_logout",
        ".inputrc",
        ".bash_profile",
        ".bash_login",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
    ]
)


def is_protected(path: str) -> bool:
    """Return whether a path or a pattern names a protected file, which decides what runs by itself."""
    path = _same(path)
    parts = path.split("/")
    if parts[-1] in _PROTECTED_FILES or not _PROTECTED_FOLDERS.isdisjoint(parts):
        return True
    return any(below in f"/{path}/" for below in _PROTECTED_BELOW)


def lies_in(path: str, folder: str) -> bool:
    """Return whether a path is a folder or below it, ignoring case like some file systems."""
    path, folder = _same(path), _same(folder)
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def allows(pattern: str, path: str) -> bool:
    """Return whether an allow rule's pattern permits a path; a wildcard alone permits no protected one."""
    return _compiled(pattern).fullmatch(path) is not None and (
        is_protected(pattern) or not is_protected(path)
    )


def denies(pattern: str, path: str) -> bool:
    """Return whether a deny rule's pattern forbids a path, ignoring case like some file systems."""
    return _compiled(_same(pattern)).fullmatch(_same(path)) is not None


def pattern_for(paths: Sequence[str], exact_only: Collection[str] = ()) -> str:
    """Return the pattern that the answer "Always" adds for paths: everything in their common folder.

    For a protected path or one in `exact_only`, it is that path itself.
    """
    single = next((path for path in paths if is_protected(path) or path in exact_only), None)
    if single is not None:
        return _named(single)
    folders = {PurePosixPath(path).parent.as_posix() for path in paths}
    if len(folders) != 1:
        return "**"
    (folder,) = folders
    return "*" if folder == "." else f"{_named(folder)}/**"


def is_pattern(text: str) -> bool:
    """Return whether text can be a pattern of paths below the working folder."""
    parts = text.split("/")
    return bool(text.strip()) and text.isprintable() and not text.startswith(("/", "~")) and ".." not in parts


def _same(path: str) -> str:
    """Return a path normalized for file systems that ignore case and Unicode composition."""
    return unicodedata.normalize("NFC", path).casefold()


def _named(path: str) -> str:
    """Return a pattern for a path, with `?` for `*` and for characters that rules cannot contain."""
    plain = "".join(char if char.isprintable() and char != "*" else "?" for char in path)
    pattern = re.sub(r"^\s|\s$", "?", plain)
    return f"./{pattern}" if pattern.startswith("~") else pattern


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern, in which `**` crosses folders and `*` and `?` do not."""
    if pattern.endswith("/"):
        pattern += "**"
    pattern = re.sub(r"\*{3,}", "**", pattern.removeprefix("./"))
    pattern = re.sub(r"(?:\*\*/)+", "**/", pattern)  # repeated ones would backtrack exponentially
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(meaning.get(part, re.escape(part)) for part in parts), re.DOTALL)
