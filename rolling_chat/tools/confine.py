"""Confine the tools to the working folder, so that none reads a file outside of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import BinaryIO

from rolling_chat.confined_files import CAN_WALK, CLOSED_TO_CHILDREN, FOLDER, walk_to
from rolling_chat.text import printable
from rolling_chat.tools.base import ToolContext, ToolError
from rolling_chat.tools.decoding import show_name

_IS_WINDOWS = os.name == "nt"


@dataclass(frozen=True, slots=True)
class Located:
    """A file or folder that the user named: its resolved path, and its state at that time."""

    path: Path
    is_inside: bool
    is_folder: bool
    size: int  # bytes
    identity: tuple[int, int]

    def is_still(self, descriptor: int) -> bool:
        """Return whether an open file is the one that was located."""
        status = os.fstat(descriptor)
        return (status.st_dev, status.st_ino) == self.identity


def locate(path: str, context: ToolContext) -> Located | None:
    """Resolve a path that the user named, even outside the working folder; None if it does not exist.

    Nothing is opened.
    """
    folder = context.folder.resolve()
    try:
        named = folder / _expand_home(path, context)
        _require_plain_parts(named)
        resolved = named.resolve(strict=True)
        status = resolved.stat()
    except (OSError, RuntimeError, ValueError):
        return None
    is_inside, is_folder = resolved.is_relative_to(folder), stat.S_ISDIR(status.st_mode)
    return Located(resolved, is_inside, is_folder, status.st_size, (status.st_dev, status.st_ino))


def resolve_inside(path: str, context: ToolContext) -> Path:
    """Resolve `path`, including symlinks, to a path inside the working folder.

    Relative paths are relative to that folder; `~` is the home folder. Raises ToolError for a path that is
    outside, does not exist or is invalid.
    """
    folder = context.folder.resolve()
    try:
        named = folder / _expand_home(path, context)
        _require_plain_parts(named)
        # the error for a path outside does not reveal whether it exists
        if not named.resolve().is_relative_to(folder):
            raise _outside(path)
        resolved = named.resolve(strict=True)
    except FileNotFoundError:
        raise ToolError(f"There is no {_quote(path)} in the working folder.") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise ToolError(f"{_quote(path)} cannot be used as a path: {_why(error)}.") from None
    if not resolved.is_relative_to(folder):
        raise _outside(path)
    return resolved


def resolve_parent(path: str, context: ToolContext) -> Path:
    """Resolve the folder of `path`, including symlinks, but not the last part, which need not exist.

    The folder need not exist either. Raises ToolError for a path outside the working folder, that folder
    itself, and an invalid name.
    """
    folder = context.folder.resolve()
    try:
        named = folder / _expand_home(path, context)
        _require_plain_parts(named)
        named = Path(os.path.normpath(named))
        parent = named.parent.resolve()
        inside = parent.is_relative_to(folder) and named != folder and bool(named.name)
        if inside and "\0" in str(named):
            raise ValueError(path)
    except (OSError, RuntimeError, ValueError) as error:
        raise ToolError(f"{_quote(path)} cannot be used as a path: {_why(error)}.") from None
    if not inside:
        raise ToolError(f"{_quote(path)} is outside the working folder; files are changed only inside it.")
    return parent / named.name


def resolve_file(path: str, context: ToolContext) -> Path:
    """Resolve a file like `resolve_inside`, or one outside that is attached or belongs to a skill."""
    named = _expand_home(path, context)
    if context.is_attached is not None and context.is_attached(named):
        return Path(named)
    if context.skills is not None and Path(named).is_absolute():
        with suppress(OSError, RuntimeError, ValueError):
            resolved = Path(named).resolve(strict=True)
            if _top_of(resolved, context) != context.folder.resolve():
                return resolved
    return resolve_inside(path, context)


def _top_of(path: Path, context: ToolContext) -> Path:
    """Return the folder that permits a resolved path to be read: a skill's or the working folder."""
    folders = context.skills.folders if context.skills is not None else ()
    return next((folder for folder in folders if path.is_relative_to(folder)), context.folder.resolve())


def _outside(path: str) -> ToolError:
    return ToolError(f"{_quote(path)} is outside the working folder; tools read only inside it.")


def relative_name(path: Path, context: ToolContext) -> str:
    """Return a resolved path for display: relative to the folder, "." for the folder itself."""
    folder = context.folder.resolve()
    return show_name(path.relative_to(folder) if path.is_relative_to(folder) else path)


def open_inside(path: Path, context: ToolContext) -> BinaryIO:
    """Open a path from `resolve_file` for reading bytes.

    Its folders are opened one by one without following symlinks, so that a link created after the check has
    no effect. It is opened without blocking, so that a pipe cannot hang the program. Raises ToolError if it
    is not a regular file or cannot be read.
    """
    name = relative_name(path, context)
    try:
        folder = _top_of(path, context)
        descriptor = walk_to(path, folder if path.is_relative_to(folder) else path.parent)
    except IsADirectoryError:
        raise ToolError(f"{name} is a folder; list_files shows what is in it.") from None
    except OSError as error:
        raise ToolError(f"{name} cannot be read: {_why(error)}.") from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise ToolError(f"{name} is a folder; list_files shows what is in it.")
        raise ToolError(f"{name} is not a regular file.")
    return os.fdopen(descriptor, "rb")


def open_folder(path: Path, context: ToolContext) -> int | str:
    """Open a resolved folder; return its path if folders cannot be opened. Raises OSError."""
    if not CAN_WALK:
        return str(path)
    folder = context.folder.resolve()
    if not path.is_relative_to(folder):
        return walk_to(path, path.parent, FOLDER)
    return walk_to(path, folder, FOLDER)


@contextmanager
def working_folder(context: ToolContext) -> Iterator[tuple[int, ...]]:
    """Open the working folder for a process to inherit; yield nothing if folders cannot be opened."""
    if not CAN_WALK:
        yield ()
        return
    descriptor = os.open(context.folder, os.O_RDONLY | FOLDER | CLOSED_TO_CHILDREN)
    try:
        yield (descriptor,)
    finally:
        os.close(descriptor)


def _require_plain_parts(path: Path) -> None:
    """Raise ValueError for names that mean another file or a stream on Windows: `a.`, `a `, `a:b`."""
    if not _IS_WINDOWS:
        return
    windows = PureWindowsPath(str(path))
    for part in windows.parts[bool(windows.anchor) :]:
        if part != ".." and (":" in part or part.endswith((".", " "))):
            raise ValueError(path)


def _expand_home(path: str, context: ToolContext) -> str:
    home = context.environ.get("HOME", "")
    if home and (path == "~" or path.startswith("~/")):
        return home + path[1:]
    return path


def _quote(path: str) -> str:
    return f"“{printable(path, 200)}”"


def _why(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "it is not a name that a file can have"
