"""What the tool `note` may see of the notes that a conversation has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rolling_chat.notes import Note, NoteKey


class NotePad(Protocol):
    """The notes of the session's branch, as they are told in a prompt."""

    @property
    def notes(self) -> Sequence[Note]:
        """The notes, oldest first, with those of calls in this reply that were answered."""
        ...

    @property
    def next_key(self) -> NoteKey:
        """The key of the note that the call makes which is being answered."""
        ...

    @property
    def most(self) -> int:
        """The most that all notes may take together, in tokens."""
        ...

    def count(self, notes: Sequence[Note]) -> int:
        """Return what these notes take together, in tokens."""
        ...
