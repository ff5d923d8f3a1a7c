"""Hash the bytes of files, to find out later whether they have changed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

MAX_HASHED_BYTES = 1_000_000_000
"""What is longer is not read to its end for a hash: that would keep people waiting."""

_PIECE = 1_000_000
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class FileHash:
    """A SHA-256 computed from a file's bytes while they are read for another purpose."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._bytes = 0

    def add(self, data: bytes) -> None:
        """Add bytes that were read to the hash."""
        self._hash.update(data)
        self._bytes += len(data)

    def finish(self, file: BinaryIO) -> str:
        """Read the rest of `file`, and return the hash in hexadecimal; empty beyond MAX_HASHED_BYTES."""
        while self._bytes <= MAX_HASHED_BYTES:
            data = file.read(_PIECE)
            if not data:
                return self._hash.hexdigest()
            self.add(data)
        return ""


def hash_file(path: Path) -> str | None:
    """Return the hash of a file on disk; None if it cannot be read, empty if it is too long."""
    try:
        # non-blocking, because a pipe may have replaced the file
        with os.fdopen(os.open(path, _READ), "rb") as file:
            return FileHash().finish(file)
    except (OSError, ValueError):
        return None
