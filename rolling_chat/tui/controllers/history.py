"""The prompt history: what was sent before, kept in a file of one JSON string a line."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_log = logging.getLogger("rolling_chat.tui")

_KEPT = 1000
_MOST_CHARS = 20_000  # longer ones are worth keeping in the session, not here


class History:
    """Walks what was sent, oldest to newest; the draft waits below the newest.

    A file that cannot be read or written costs the history and nothing else.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._entries = _read(path) if path is not None else []
        self._at = len(self._entries)
        self._draft = ""

    def add(self, text: str) -> None:
        """Remember what was sent."""
        self._at, self._draft = len(self._entries), ""
        if not text.strip() or len(text) > _MOST_CHARS or self._entries[-1:] == [text]:
            return
        self._entries.append(text)
        self._at = len(self._entries)
        if self._path is not None:
            self._write(self._path, text)

    def older(self, draft: str) -> str | None:
        """The entry before; None at the oldest. `draft` is kept for the way back."""
        if self._at == 0:
            return None
        if self._at == len(self._entries):
            self._draft = draft
        self._at -= 1
        return self._entries[self._at]

    def newer(self) -> str | None:
        """The entry after, at last the draft; None below it."""
        if self._at >= len(self._entries):
            return None
        self._at += 1
        return self._entries[self._at] if self._at < len(self._entries) else self._draft

    def _write(self, path: Path, text: str) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(text) + "\n")
        except OSError:
            _log.warning("the prompt history could not be written to %s", path, exc_info=True)


def _read(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    entries: list[str] = []
    for line in lines[-_KEPT:]:
        with suppress(ValueError, RecursionError):
            entry = json.loads(line)
            if isinstance(entry, str):
                entries.append(entry)
    return entries
