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

# What decides what runs by itself, here or later: neither the policy `edits` nor a wildcard reaches it.
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
    """Return whether a path, or the pattern of one, names what decides what runs by itself."""
    path = _same(path)
    parts = path.split("/")
    if parts[-1] in _PROTECTED_FILES or not _PROTECTED_FOLDERS.isdisjoint(parts):
        return True
    return any(below in f"/{path}/" for below in _PROTECTED_BELOW)


def lies_in(path: str, folder: str) -> bool:
    """Return whether a path is a folder, or below it, as file systems compare them that ignore case."""
    path, folder = _same(path), _same(folder)
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def allows(pattern: str, path: str) -> bool:
    """Return whether an allow rule's pattern permits a path; a wildcard alone names no protected one."""
    return _compiled(pattern).fullmatch(path) is not None and (
        is_protected(pattern) or not is_protected(path)
    )


def denies(pattern: str, path: str) -> bool:
    """Return whether a deny rule's pattern forbids a path; some file systems take `.ENV` for `.env`."""
    return _compiled(_same(pattern)).fullmatch(_same(path)) is not None


def pattern_for(paths: Sequence[str], alone: Collection[str] = ()) -> str:
    """Return the pattern that an "Always" means for paths: all in the folder that they share.

    A protected path, and one of `alone`, is proposed by itself.
    """
    single = next((path for path in paths if is_protected(path) or path in alone), None)
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
    """Return a path as file systems compare it that ignore case and how letters are composed."""
    return unicodedata.normalize("NFC", path).casefold()


def _named(path: str) -> str:
    """Return the pattern that names a path: a `?` for what cannot be written in a rule, and for a `*`."""
    plain = "".join(char if char.isprintable() and char != "*" else "?" for char in path)
    pattern = re.sub(r"^\s|\s$", "?", plain)
    return f"./{pattern}" if pattern.startswith("~") else pattern


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    """`**` crosses folders, `*` and `?` do not."""
    if pattern.endswith("/"):
        pattern += "**"
    pattern = re.sub(r"\*{3,}", "**", pattern.removeprefix("./"))
    pattern = re.sub(r"(?:\*\*/)+", "**/", pattern)  # many in a row would be tried in every combination
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(meaning.get(part, re.escape(part)) for part in parts), re.DOTALL)
