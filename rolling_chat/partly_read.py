"""A branch of which only a part has been read; access to any other message raises NotReadError."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from rolling_chat.messages import Message


class NotReadError(LookupError):
    """A message was accessed that has not been read; `index` is its index in the branch."""

    def __init__(self, index: int) -> None:
        super().__init__(f"the message at {index} has not been read")
        self.index = index


class PartlyRead(Sequence[Message]):
    """A branch whose first `unread` messages were not read, except those in `found` (by index).

    Its length is that of the whole branch. Accessing an unread message raises NotReadError. Immutable.
    """

    __slots__ = ("_found", "_newest", "_unread")

    def __init__(self, unread: int, found: Mapping[int, Message], newest: Sequence[Message]) -> None:
        self._unread = unread
        self._found = found
        self._newest = newest

    @overload
    def __getitem__(self, at: int) -> Message: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Message]: ...

    def __getitem__(self, at: int | slice) -> Message | Sequence[Message]:
        places = range(len(self))[at]
        return self._at(places) if isinstance(places, int) else tuple(map(self._at, places))

    def __len__(self) -> int:
        return self._unread + len(self._newest)

    @property
    def unread(self) -> int:
        """The number of messages before those that were read; a few of them are in `found`."""
        return self._unread

    @property
    def found(self) -> Mapping[int, Message]:
        """Individually read messages of the unread part, by index."""
        return self._found

    def with_last(self, message: Message) -> PartlyRead:
        """Return the branch with one more message at its end."""
        return PartlyRead(self._unread, self._found, (*self._newest, message))

    def read_parts(self) -> Iterator[tuple[int, Message]]:
        """Yield every message that was read, in order, with its index."""
        yield from ((index, self._found[index]) for index in sorted(self._found) if index < self._unread)
        yield from enumerate(self._newest, self._unread)

    def _at(self, index: int) -> Message:
        if index >= self._unread:
            return self._newest[index - self._unread]
        found = self._found.get(index)
        if found is None:
            raise NotReadError(index)
        return found


def read_parts(branch: Sequence[Message]) -> Iterator[tuple[int, Message]]:
    """Yield every message of a branch that was read, in order, with its index."""
    return branch.read_parts() if isinstance(branch, PartlyRead) else iter(enumerate(branch))


def with_last(branch: Sequence[Message], message: Message) -> Sequence[Message]:
    """Return a branch with one more message at its end."""
    return branch.with_last(message) if isinstance(branch, PartlyRead) else (*branch, message)
