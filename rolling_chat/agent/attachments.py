"""Save messages that are too large to send as private files, which the model reads in pieces."""

from __future__ import annotations

import itertools
import logging
import os
import re
import shutil
import tempfile
from pathlib import Path

from rolling_chat.sessions.records import SessionInfo, StoreError
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.toml_file import replace_file

log = logging.getLogger("rolling_chat.agent.attachments")

LONGEST_LINE = 2_000
"""The maximum characters of a line in such a file; longer ones are broken, because files are read by line."""


_NAME = re.compile(r"message-[0-9]+\.txt")


class Attachments:
    """The private files of all sessions, in a folder for each; they are temporary if `folder` is None."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def keep(self, session: str, text: str) -> Path:
        """Write `text` to a new file that only the user may read. Raises SettingsError."""
        folder = self._root() / session
        names = (folder / f"message-{number}.txt" for number in itertools.count(1))
        path = next(path for path in names if not path.exists())
        replace_file(path, text)
        return path

    def keep_picture(self, session: str, data: bytes, suffix: str, taken: Path) -> str:
        """Write a picture to a new file that only the user may read, and return its name.

        The name is unique in the folder `taken` too. Raises SettingsError.
        """
        folder = self._root() / session
        names = (f"pasted-picture-{number}{suffix}" for number in itertools.count(1))
        name = next(name for name in names if not ((folder / name).exists() or (taken / name).exists()))
        replace_file(folder / name, data)
        return name

    def folder_of(self, session: str) -> Path | None:
        """Return the folder of a session's files, which need not exist; None if there are no files yet."""
        has_root = self._folder is not None or self._temporary is not None
        return self._root() / session if has_root else None

    def is_kept(self, path: str) -> bool:
        """Return whether `path` is that of a saved message."""
        folder, name = os.path.split(path)
        return Path(folder).parent == self._root() and _NAME.fullmatch(name) is not None

    def close(self) -> None:
        """Delete the files, if they are temporary."""
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def _root(self) -> Path:
        if self._folder is not None:
            return self._folder.resolve()
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="rolling-chat-")
        return Path(self._temporary.name).resolve()


def break_long_lines(text: str) -> str:
    """Break lines of more than `LONGEST_LINE` characters, so that every part can be read by line."""
    lines = text.splitlines(keepends=True)
    if all(len(line) <= LONGEST_LINE for line in lines):
        return text
    return "".join(_broken(line) for line in lines)


def delete_attachments(folder: Path, session: SessionInfo, store: SessionStore) -> None:
    """Delete the files of a deleted session, unless a fork of it still names them."""
    files = folder / session.on_disk
    try:
        if not files.is_dir() or store.search(f'"{session.on_disk}"', limit=1):
            return
        shutil.rmtree(files)
    except (OSError, StoreError):
        log.warning("the files of session %s could not be deleted", session.id, exc_info=True)


def _broken(line: str) -> str:
    parts = [line[at : at + LONGEST_LINE] for at in range(0, len(line), LONGEST_LINE)]
    return "\n".join(parts)
