"""Files that only their owner can read."""

from __future__ import annotations

import os
from contextlib import suppress
from logging import FileHandler
from pathlib import Path
from typing import Any


def open_private(path: str, flags: int) -> int:
    """Open a file with mode 0600, restricting an existing one (an `opener` for `open`)."""
    descriptor = os.open(path, flags, 0o600)
    with suppress(OSError):  # another user's file keeps its mode
        Path(path).chmod(0o600)
    return descriptor


class PrivateFileHandler(FileHandler):
    """A log handler whose file has mode 0600."""

    def _open(self) -> Any:
        return open(
            self.baseFilename, self.mode, encoding=self.encoding, errors=self.errors, opener=open_private
        )
