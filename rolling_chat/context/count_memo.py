"""What the pipeline has counted and cut: handed in by whoever plans, so that nothing is worked out twice."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from rolling_chat.context.text_memo import TextMemo
from rolling_chat.messages import Message

CountText: TypeAlias = Callable[[str], int]


class CountMemo:
    """Remember token counts of messages and of texts, and the texts that were cut.

    Everything in it is a function of what was counted: a prompt is the same whatever the memo holds. A
    message's counts are known by the object, and gone with it; a copy has none. Counts are raw: by the name
    of an encoding or a rule, before any correction. Safe for threads, which at worst count something twice.
    """

    def __init__(self) -> None:
        self.cuts: TextMemo[str] = TextMemo()
        self._texts: TextMemo[int] = TextMemo()
        self._counts: dict[str, dict[int, _Count]] = {}  # by name and by the identity of the message
        self._new: set[int] = set()  # identities of messages
        self._forget = _forgetting(self)

    def count_text(self, text: str, count: CountText) -> int:
        """Return the count of a text by `count`, which must not hold the memo itself."""
        return self._texts.get(text, count, lambda: count(text), _no_characters)

    def find(self, message: Message, name: str) -> int | None:
        """Return the count of `message` by the encoding or rule `name`, None if unknown."""
        count = self._counts.get(name, _NO_COUNTS).get(id(message))
        return count.tokens if count is not None and count() is message else None

    def add(self, message: Message, name: str, tokens: int) -> None:
        """Add a count that was made just now; it is new if the message has an id to store it by."""
        key = self._put(message, name, tokens)
        if message.id:
            self._new.add(key)

    def load(self, message: Message, counts: Mapping[str, int]) -> None:
        """Add counts that were made earlier, by name; they are not new."""
        for name, tokens in counts.items():
            self._put(message, name, tokens)

    def counts_of(self, message: Message) -> dict[str, int]:
        """Return all counts of `message`, by name."""
        found = ((name, self.find(message, name)) for name in tuple(self._counts))
        return {name: tokens for name, tokens in found if tokens is not None}

    def take_new(self, messages: Sequence[Message]) -> list[Message]:
        """Return those of `messages` that were counted since the last call.

        Looks from the newest backwards until it has found them all.
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
    """One count of one message, which it does not keep alive."""

    __slots__ = ("key", "name", "tokens")

    key: int
    name: str
    tokens: int


_NO_COUNTS: Mapping[int, _Count] = {}


def _forgetting(memo: CountMemo) -> Callable[[weakref.ref[Message]], None]:
    """What removes the count of a message that is gone; it must not keep the memo alive either."""
    memo_reference = weakref.ref(memo)
    kind = _Count  # when the interpreter ends, messages may outlive the names of this module

    def forget(count: weakref.ref[Message]) -> None:
        memo = memo_reference()
        if memo is not None and isinstance(count, kind):
            memo.drop(count)

    return forget


def _no_characters(_: int) -> int:
    return 0
