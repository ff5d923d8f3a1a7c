"""The items of a stored conversation, put into a list; a branch shares its beginning with another."""

from __future__ import annotations

from collections.abc import Sequence

from rolling_chat.messages import Message
from rolling_chat.tui.transcript.items import items_of
from rolling_chat.tui.transcript.listing import ItemList


class LoadedItems:
    """Remembers which messages the first of the items were made of."""

    def __init__(self, items: ItemList) -> None:
        self._items = items
        self._messages: list[Message] = []

    def load(self, messages: Sequence[Message]) -> None:
        """The items of these messages in place of all; those of turns that were loaded before stay."""
        kept = _turns_of_both(self._messages, messages)
        ordinal = self._items.ordinal(self._messages[kept].id) if kept else None
        if ordinal is None:
            self._items.clear(items_of(messages))
        else:
            self._items.cut(ordinal)
            for item in items_of(messages[kept:]):
                self._items.append(item)
        self._messages = list(messages)

    def prepend(self, messages: Sequence[Message]) -> None:
        """The items of older messages on top; they end where the others' turn begins."""
        self._items.prepend(items_of(messages))
        self._messages[:0] = messages


def _turns_of_both(before: Sequence[Message], now: Sequence[Message]) -> int:
    """How many messages are the same from the root on, by whole turns.

    The last turn of `before` is not among them: what is shown of it may have changed meanwhile.
    """
    most = min(len(before), len(now))
    same = next((at for at in range(most) if before[at] is not now[at]), most)
    while same and not (_opens_turn(before, same) and (same == len(now) or _opens_turn(now, same))):
        same -= 1
    return same


def _opens_turn(messages: Sequence[Message], at: int) -> bool:
    return at < len(messages) and messages[at].role == "user"
