"""What files held before and after tools changed them, so that changes can be undone and redone.

Contents are stored once, by their hash. A change is stored before it is made: after a crash the file is
either as it was before or as it is after.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from rolling_chat.sessions.records import KeptChange

MAX_KEPT_BYTES = 500_000_000
"""Of contents, compressed: beyond it the oldest are dropped, and changes of them can no longer be undone."""


class KeptFiles(Protocol):
    """A store of the changes that tools made to files."""

    def keep(self, changes: Iterable[KeptChange], contents: Iterable[bytes]) -> None:
        """Store the changes of one call that is about to be made, and the contents that they name."""

    def drop(self, changes: Sequence[KeptChange]) -> None:
        """Delete the newest changes of a reply, which were not made after all."""

    def of_branch(self, head: str) -> list[KeptChange]:
        """Return the changes on the branch that ends at a message, oldest first; none for an empty `head`."""

    def has_any(self) -> bool:
        """Return whether a tool ever changed a file, in any session."""

    def newest_paths(self, most: int) -> list[str]:
        """Return the paths of the newest changes, in any session and folder."""

    def size(self) -> int:
        """Return the bytes of all contents, compressed."""

    def keep_mode(self, path: str, sha256: str, mode: int) -> None:
        """Store the mode that a new file turned out to have, so that it comes back with it."""

    def content(self, sha256: str) -> bytes | None:
        """Return a stored content by its hash; None if it was dropped."""
