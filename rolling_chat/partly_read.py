"""A branch of which only a part has been read: whoever asks for the rest is told which part is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from rolling_chat.messages import Message


class NotReadError(LookupError):
    """A message was asked for that has not been read; `index` is its place in the branch."""

    def __init__(self, index: int) -> None:
        super().__init__(f"the message at {index} has not been read")
        self.index = index


class PartlyRead(Sequence[Message]):
    """A branch whose first `unread` messages are not there, but for those `found` by their index.

    Its length is that of the whole. To ask for a message that is not there raises NotReadError. It does not
    change.
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
        """How many messages stand above those that were read; few of them are there."""
        return self._unread

    @property
    def found(self) -> Mapping[int, Message]:
        """Those that are there of the messages that were not read, by their index."""
        return self._found

    def with_last(self, message: Message) -> PartlyRead:
        """Return the branch with one more message at its end."""
        return PartlyRead(self._unread, self._found, (*self._newest, message))

    def read_parts(self) -> Iterator[tuple[int, Message]]:
        """Yield every message that is there, in order, with its index."""
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
    """Yield the messages of a branch that have been read, in order, with their indexes."""
    return branch.read_parts() if isinstance(branch, PartlyRead) else iter(enumerate(branch))


def with_last(branch: Sequence[Message], message: Message) -> Sequence[Message]:
    """Return a branch with one more message at its end."""
    return branch.with_last(message) if isinstance(branch, PartlyRead) else (*branch, message)
