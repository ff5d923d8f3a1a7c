"""Snapshots of a list that only grows at its end, so that a branch can be passed around without copying."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeVar, overload

Entry = TypeVar("Entry")


class Snapshot(Sequence[Entry]):
    """The current entries of a list, shared with it.

    The owner of the list may only append to it, and must create a new list for any other change. So a
    snapshot never changes, in any thread.
    """

    __slots__ = ("_entries", "_length")

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._length = len(entries)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> Entry: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Entry]: ...

    def __getitem__(self, at: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(at, slice):
            found = range(self._length)[at]
            if found.step == 1:
                return self._entries[found.start : found.stop]
            return [self._entries[index] for index in found]
        if 0 <= at < self._length:
            return self._entries[at]
        return self._entries[range(self._length)[at]]

    def __iter__(self) -> Iterator[Entry]:
        return islice(self._entries, self._length)

    def __reversed__(self) -> Iterator[Entry]:
        return map(self._entries.__getitem__, range(self._length - 1, -1, -1))
