"""A memo, provided by the caller, of everything the pipeline counted and cut, to compute nothing twice."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from rolling_chat.context.text_memo import TextMemo
from rolling_chat.messages import Message

CountText: TypeAlias = Callable[[str], int]


class CountMemo:
    """Token counts of messages and texts, and texts that were cut.

    Every entry is a pure function of its input: the memo never changes a prompt. The counts of a message
    belong to the object and disappear with it; a copy has none. Counts are raw: keyed by the name of an
    encoding or a rule, before any correction. Thread-safe; at worst, two threads count the same text.
    """

    def __init__(self) -> None:
        self.cuts: TextMemo[str] = TextMemo()
        self._texts: TextMemo[int] = TextMemo()
        self._counts: dict[str, dict[int, _Count]] = {}  # by name and by the identity of the message
        self._new: set[int] = set()  # identities of messages
        self._forget = _forget_callback(self)

    def count_text(self, text: str, count: CountText) -> int:
        """Return the count of a text by `count`, which must not reference the memo itself."""
        return self._texts.get(text, count, lambda: count(text), _no_characters)

    def find(self, message: Message, name: str) -> int | None:
        """Return the count of `message` by the encoding or rule `name`; None if unknown."""
        count = self._counts.get(name, _NO_COUNTS).get(id(message))
        return count.tokens if count is not None and count() is message else None

    def add(self, message: Message, name: str, tokens: int) -> None:
        """Add a fresh count; it is reported as new if the message has an id to store it under."""
        key = self._put(message, name, tokens)
        if message.id:
            self._new.add(key)

    def load(self, message: Message, counts: Mapping[str, int]) -> None:
        """Add stored counts, by name; they are not reported as new."""
        for name, tokens in counts.items():
            self._put(message, name, tokens)

    def counts_of(self, message: Message) -> dict[str, int]:
        """Return all counts of `message`, by name."""
        found = ((name, self.find(message, name)) for name in tuple(self._counts))
        return {name: tokens for name, tokens in found if tokens is not None}

    def take_new(self, messages: Sequence[Message]) -> list[Message]:
        """Return those of `messages` that were counted since the last call.

        Search from the newest backwards and stop when all are found.
        """
        new, self._new = self._new, set()
        found: list[Message] = []
        for message in reversed(messages):
            if not new:
                break
            if id(message) in new:
                new.discard(id(message))
                found.append(message)
        return found[::-1]

    def _put(self, message: Message, name: str, tokens: int) -> int:
        count = _Count(message, self._forget)
        count.key, count.name, count.tokens = id(message), name, tokens
        self._counts.setdefault(name, {})[count.key] = count
        return count.key

    def drop(self, count: _Count) -> None:
        """Remove a count whose message is gone."""
        self._counts[count.name].pop(count.key, None)
        self._new.discard(count.key)


class _Count(weakref.ref[Message]):
    """The count of a message, referenced weakly so that the count does not keep the message alive."""

    __slots__ = ("key", "name", "tokens")

    key: int
    name: str
    tokens: int


_NO_COUNTS: Mapping[int, _Count] = {}


def _forget_callback(memo: CountMemo) -> Callable[[weakref.ref[Message]], None]:
    """Return a callback that removes the count of a collected message; it references the memo weakly."""
    memo_reference = weakref.ref(memo)
    kind = _Count  # at interpreter exit, messages may outlive this module's globals

    def forget(count: weakref.ref[Message]) -> None:
        memo = memo_reference()
        if memo is not None and isinstance(count, kind):
            memo.drop(count)

    return forget


def _no_characters(_: int) -> int:
    return 0
