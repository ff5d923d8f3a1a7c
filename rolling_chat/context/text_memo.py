"""A cache of values computed from texts, limited by the number of characters in it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")

# The cache is bounded so that it does not keep a whole session's texts in memory.
MAX_CHARACTERS = 4_000_000


class TextMemo(Generic[Value]):
    """A cache of values by text and parameters that evicts the least recently used first.

    It contains at most `limit` characters of text; values of longer texts are computed at each call.
    Thread-safe.
    """

    def __init__(self, limit: int = MAX_CHARACTERS) -> None:
        self._limit = limit
        self._size = 0
        self._known: OrderedDict[tuple[str, Hashable], tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, text: str, rest: Hashable, make: Callable[[], Value], size: Callable[[Value], int]
    ) -> Value:
        """Return the cached value for `text` and `rest`, made if missing; `size` counts its characters."""
        key = (text, rest)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key][0]
        value = make()
        self._keep(key, value, len(text) + size(value) + _OVERHEAD)
        return value

    def _keep(self, key: tuple[str, Hashable], value: Value, size: int) -> None:
        if size > self._limit:
            return
        with self._lock:
            if key in self._known:
                return
            self._known[key] = (value, size)
            self._size += size
            while self._size > self._limit:
                _, (_, freed) = self._known.popitem(last=False)
                self._size -= freed


# The cost of an entry beyond its text, in characters.
_OVERHEAD = 200
