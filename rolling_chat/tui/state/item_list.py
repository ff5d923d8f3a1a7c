"""The list of transcript items, which records its changes since the last read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

from rolling_chat.messages import Message
from rolling_chat.tui.state.items import NOTHING_COUNTED, Item, items_of


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes since the last read: the whole list (`is_new`), or everything from `cut` on, plus `changed`.

    Items added at either end show in the list's `ordinals`.
    """

    is_new: bool
    cut: int | None
    changed: frozenset[int]


class ItemList(Sequence[Item]):
    """A list of items, oldest first; adding items above or below does not change an item's index.

    Streamed text is kept in pieces until the item is read.
    """

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self.revision = 0  # grows with every change
        self._first = 0  # the ordinal of the first item
        self._items: list[Item] = []
        self.by_id: dict[str, int] = {}  # item ids to ordinals
        self._growing: dict[int, list[str]] = {}
        self._is_new = True
        self._cut: int | None = None
        self._changed: set[int] = set()
        self._taken = -1  # the revision when changes were last taken
        self.clear(items)

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> Item: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Item]: ...

    def __getitem__(self, at: int | slice) -> Item | Sequence[Item]:
        self._join()
        return self._items[at]

    def __iter__(self) -> Iterator[Item]:
        self._join()
        return iter(self._items)

    @property
    def ordinals(self) -> range:
        """The range of the items' indices, negative for items added on top."""
        return range(self._first, self._first + len(self._items))

    def at(self, ordinal: int) -> Item:
        """Return the item at an index."""
        self._join()
        return self._items[ordinal - self._first]

    def clear(self, items: Iterable[Item] = ()) -> None:
        """Replace all items."""
        self.revision += 1
        self._items, self._first = list(items), 0
        self.by_id = {item.id: at for at, item in enumerate(self._items)}
        self._growing.clear()
        self._is_new = True

    def append(self, item: Item) -> int:
        """Append an item and return its index."""
        self.revision += 1
        ordinal = self._first + len(self._items)
        self._items.append(item)
        self.by_id[item.id] = ordinal
        return ordinal

    def pop(self) -> Item:
        """Remove and return the last item, which must have been appended."""
        self.revision += 1
        self._join()
        item = self._items.pop()
        end = self._first + len(self._items)
        if self.by_id.get(item.id) == end:
            del self.by_id[item.id]
        self._cut = end if self._cut is None else min(end, self._cut)
        return item

    def cut(self, ordinal: int) -> None:
        """Remove the items from an index to the end."""
        while self._first + len(self._items) > ordinal:
            self.pop()

    def prepend(self, items: Sequence[Item]) -> None:
        """Add items on top, in their order."""
        self.revision += 1
        self._items[:0] = items
        self._first -= len(items)
        for at, item in enumerate(items):
            self.by_id.setdefault(item.id, self._first + at)
        if items:
            self._changed.add(self._first + len(items))  # it now has an item above it

    def put(self, ordinal: int, item: Item) -> None:
        """Replace the item at an index."""
        self._join()
        before = self._items[ordinal - self._first]
        if before == item:
            return
        self.revision += 1
        self._items[ordinal - self._first] = item
        if before.id != item.id:
            del self.by_id[before.id]
            self.by_id[item.id] = ordinal
        self._changed.add(ordinal)

    def grow(self, ordinal: int, text: str) -> None:
        """Append text to the item at an index."""
        self.revision += 1
        self._growing.setdefault(ordinal, []).append(text)
        self._changed.add(ordinal)

    def mark_all_new(self) -> None:
        """Make the next `take_changes` report the whole list as new, for another reader."""
        self.revision += 1
        self._is_new = True

    def take_changes(self) -> Changes | None:
        """Return what changed since the last call; None if nothing did."""
        if self._taken == self.revision:
            return None
        self._join()
        self._taken = self.revision
        taken = Changes(self._is_new, self._cut, frozenset(self._changed))
        self._is_new, self._cut = False, None
        self._changed.clear()
        return taken

    def _join(self) -> None:
        for ordinal, texts in self._growing.items():
            item = self._items[ordinal - self._first]
            self._items[ordinal - self._first] = replace(item, source=item.text + "".join(texts))
        self._growing.clear()


class LoadedItems:
    """A loader of stored messages into the item list; a reload keeps unchanged leading turns."""

    def __init__(self, items: ItemList) -> None:
        self._items = items
        self._messages: list[Message] = []

    def load(self, messages: Sequence[Message], tokens: Mapping[str, int] = NOTHING_COUNTED) -> None:
        """Replace the items with those of `messages`, keeping leading turns that did not change.

        `tokens` as for `items_of`.
        """
        kept = _unchanged_turns(self._messages, messages)
        ordinal = self._items.by_id.get(self._messages[kept].id) if kept else None
        if ordinal is None:
            self._items.clear(items_of(messages, tokens))
        else:
            self._items.cut(ordinal)
            for item in items_of(messages[kept:], tokens):
                self._items.append(item)
        self._messages = list(messages)

    def prepend(self, messages: Sequence[Message], tokens: Mapping[str, int] = NOTHING_COUNTED) -> None:
        """Add the items of older messages on top; they must end where a loaded turn begins."""
        self._items.prepend(items_of(messages, tokens))
        self._messages[:0] = messages


def _unchanged_turns(before: Sequence[Message], now: Sequence[Message]) -> int:
    """Return how many leading messages, in whole turns, are the same in both lists.

    Excludes the last turn of `before`, whose items may have changed since.
    """
    shorter = min(len(before), len(now))
    same = next((at for at in range(shorter) if before[at] is not now[at]), shorter)
    while same and not (_opens_turn(before, same) and (same == len(now) or _opens_turn(now, same))):
        same -= 1
    return same


def _opens_turn(messages: Sequence[Message], at: int) -> bool:
    return at < len(messages) and messages[at].role == "user"
