"""The prompt history: prompts sent before, in a file of one JSON value per line."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rolling_chat.mentions import plain
from rolling_chat.settings.errors import SettingsError
from rolling_chat.tui.drafts.draft_files import PasteFiles
from rolling_chat.tui.drafts.pastes import Draft

if TYPE_CHECKING:
    from pathlib import Path

_log = logging.getLogger("rolling_chat.tui")

_KEPT = 1000
_MAX_CHARS = 20_000  # longer prompts are only in their session
_TAIL = 4_000_000  # bytes read from the file's end at most, as it only ever grows


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line of the file: its text, its JSON value, and a function that reads its draft with the pastes."""

    text: str
    value: object
    read: Callable[[], Draft]


class History:
    """The prompts that were sent, to walk and search; the current draft comes after the newest.

    Prompts sent in other terminals are read before each walk and search. A file that cannot be read or
    written costs only the history.
    """

    def __init__(self, path: Path | None, pastes: PasteFiles | None = None) -> None:
        self._path = path
        self._pastes = pastes or PasteFiles(None)
        self._entries: list[_Entry] = []
        self._read_to = 0
        self._at = 0
        self._draft = Draft()
        self._catch_up()

    def add(self, draft: Draft | str) -> None:
        """Add a prompt that was sent."""
        draft = _recalled(Draft(draft) if isinstance(draft, str) else draft)
        self._catch_up()
        same = bool(self._entries) and self._entries[-1].read().whole == draft.whole
        if draft.text.strip() and len(draft.text) <= _MAX_CHARS and not same:
            if self._path is not None and self._write(self._path, draft):
                self._catch_up()
            else:
                self._entries.append(_Entry(draft.text, draft, lambda: draft))
        self._at, self._draft = len(self._entries), Draft()

    def older(self, draft: Draft | str) -> Draft | None:
        """Return the previous entry, or None at the oldest; `draft` is kept for the way back."""
        if self._at == len(self._entries):
            self._catch_up()
            self._draft = Draft(draft) if isinstance(draft, str) else draft
        if self._at == 0:
            return None
        self._at -= 1
        return self._entries[self._at].read()

    def newer(self) -> Draft | None:
        """Return the next entry; after the newest, the draft kept by `older`; then None."""
        if self._at >= len(self._entries):
            return None
        self._at += 1
        return self._entries[self._at].read() if self._at < len(self._entries) else self._draft

    def search(self, words: str, below: int | None = None) -> tuple[int, Draft] | None:
        """Return the index and draft of the newest prompt before index `below` that contains `words`.

        Case matters only if `words` has capitals. Each text is found once, at its newest entry.
        """
        if below is None:
            self._catch_up()
            below = len(self._entries)
        fold = words == words.lower()
        passed = {entry.text for entry in self._entries[below:]} if below < len(self._entries) else set()
        for at in range(below - 1, -1, -1):
            text = self._entries[at].text
            if text not in passed and words in (text.lower() if fold else text):
                return at, self._entries[at].read()
        return None

    def _catch_up(self) -> None:
        """Read the lines appended to the file since the last read."""
        if self._path is None:
            return
        at_end = self._at >= len(self._entries)
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                begin = self._read_to if self._read_to <= size else 0
                skips = size - begin > _TAIL
                file.seek(max(begin, size - _TAIL))
                data = file.read()
        except OSError:
            return
        # another process may still be writing the last line; it is read when complete
        whole, newline, _ = data.rpartition(b"\n")
        self._read_to = size - (len(data) - len(whole) - len(newline))
        lines = whole.split(b"\n")[1 if skips else 0 :]
        for line in lines[-_KEPT:]:
            entry = self._entry(line)
            if entry is not None and not (self._entries and self._entries[-1].value == entry.value):
                self._entries.append(entry)
        if at_end:
            self._at = len(self._entries)

    def _entry(self, line: bytes) -> _Entry | None:
        with suppress(ValueError, RecursionError):
            value = json.loads(line)
            text = value if isinstance(value, str) else value.get("text") if isinstance(value, dict) else None
            if isinstance(text, str):
                return _Entry(plain(text), value, lambda: _recalled(self._pastes.from_json(value) or Draft()))
        return None

    def _write(self, path: Path, draft: Draft) -> bool:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            line = json.dumps(self._pastes.to_json(draft)).encode() + b"\n"
            handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                # a single write, so that two terminals do not mix their lines
                os.write(handle, (b"" if _ends_whole(handle) else b"\n") + line)
            finally:
                os.close(handle)
        except (OSError, SettingsError):
            _log.warning("the prompt history could not be written to %s", path, exc_info=True)
            return False
        return True


def _recalled(draft: Draft) -> Draft:
    """Return a draft whose mentions are plain text: only typed mentions attach files."""
    return Draft(plain(draft.kept), draft.pastes)


def _ends_whole(handle: int) -> bool:
    """Return whether the file ends with a complete line; a process that died may have left a partial one."""
    if not os.fstat(handle).st_size:
        return True
    os.lseek(handle, -1, os.SEEK_END)  # O_APPEND writes at the end regardless
    return os.read(handle, 1) == b"\n"
