"""The part of a conversation's notes that the tool `note` uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rolling_chat.notes import Note, NoteKey


class NotePad(Protocol):
    """The notes of the session's branch, as they are listed in a prompt."""

    @property
    def notes(self) -> Sequence[Note]:
        """The notes, oldest first, including those of this reply's answered calls."""
        ...

    @property
    def next_key(self) -> NoteKey:
        """The key for the note of the call that is being answered."""
        ...

    @property
    def max_tokens(self) -> int:
        """The limit for all notes together, in tokens."""
        ...

    def count(self, notes: Sequence[Note]) -> int:
        """Return the size of these notes together, in tokens."""
        ...
