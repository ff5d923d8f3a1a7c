"""A cache of values computed from texts, bounded by the characters that it holds."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")

# A text that is no longer in any prompt may be freed: the cache must not keep a session in memory.
MAX_CHARACTERS = 4_000_000


class TextMemo(Generic[Value]):
    """Cache values by text and parameters; evict the least recently used first.

    At most `limit` characters of text are held, whatever their number; a text longer than that is
    worked out at each call. Safe for threads.
    """

    def __init__(self, limit: int = MAX_CHARACTERS) -> None:
        self._limit = limit
        self._size = 0
        self._known: OrderedDict[tuple[str, Hashable], tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(
        self, text: str, rest: Hashable, make: Callable[[], Value], size: Callable[[Value], int]
    ) -> Value:
        """Return the value cached for `text` and `rest`, made if missing; `size` counts its characters."""
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


# An entry costs something beyond its text.
_OVERHEAD = 200
