"""Open files below a folder without following a symlink that was put in the way after the check."""

from __future__ import annotations

import os
import stat
from pathlib import Path

# flags that Windows does not have, where folders cannot be walked one at a time
_NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)
FOLDER: int = getattr(os, "O_DIRECTORY", 0)
CLOSED_TO_CHILDREN: int = getattr(os, "O_CLOEXEC", 0)
CAN_WALK = os.open in os.supports_dir_fd and _NO_LINK > 0


def walk_to(path: Path, folder: Path, last: int = 0) -> int:
    """Open a resolved path below `folder` for reading, one folder at a time; return the descriptor.

    Does not block on a pipe. `last` are additional flags for the path itself. Raises OSError.
    """
    flags = os.O_RDONLY | CLOSED_TO_CHILDREN | getattr(os, "O_BINARY", 0)
    if not CAN_WALK:
        return os.open(path, flags)
    flags |= _NO_LINK | _NO_WAIT
    descriptor = os.open(folder, flags | FOLDER)
    parts = path.relative_to(folder).parts
    for number, part in enumerate(parts, start=1):
        is_last = number == len(parts)
        try:
            following = os.open(part, flags | last if is_last else flags | FOLDER, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = following
    return descriptor


def is_file_inside(path: Path, folder: Path) -> bool:
    """Return whether a path leads to a regular file below a resolved folder, without opening it."""
    try:
        found = path.resolve(strict=True)
        return found.is_relative_to(folder) and stat.S_ISREG(found.stat().st_mode)
    except (OSError, RuntimeError, ValueError):  # a link to itself, a name that no file can have
        return False


def read_inside(path: Path, folder: Path, max_bytes: int) -> bytes:
    """Read the first `max_bytes` bytes of a regular file below a resolved folder.

    Raises OSError for anything else: a file outside, even by a symlink, a pipe, a device.
    """
    try:
        found = path.resolve(strict=True)
    except (RuntimeError, ValueError) as error:
        raise OSError(str(error)) from None
    if not found.is_relative_to(folder):
        raise OSError("outside of its folder")
    if not stat.S_ISREG(found.stat().st_mode):  # opening a device may have effects
        raise OSError("not a regular file")
    descriptor = walk_to(found, folder)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        return file.read(max_bytes)
