"""The ids of sessions, messages and requests: UUIDv7, the same in every store, in the order they were made.

The first 48 bits are milliseconds since the epoch, so that ids of one time begin alike: people are shown the
end of an id, which is random. https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-7
"""

from __future__ import annotations

import re
import secrets
import threading
import time

SHORT = 8
"""Characters at the end of an id by which people know a session."""

_COUNTER_BITS, _TAIL_BITS = 42, 32
_LOW_BITS = 30  # of the counter, behind the variant
_MAX_MILLISECONDS = (1 << 48) - 1
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class _Counter:
    """Counts the ids of one millisecond, so that each is above the one before whatever the clock does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._milliseconds = 0
        self._count = 0

    def next(self, now: int) -> tuple[int, int]:
        """Return the time and the count of the next id."""
        with self._lock:
            if now > self._milliseconds:
                # begun in its lower half: there is room to count
                self._milliseconds, self._count = now, secrets.randbits(_COUNTER_BITS - 1)
            else:
                self._count += 1
                if self._count >> _COUNTER_BITS:
                    self._milliseconds, self._count = self._milliseconds + 1, 0
            return self._milliseconds, self._count


_COUNTER = _Counter()


def new_id() -> str:
    """Return a new id, above all that this process has made."""
    return _text(*_COUNTER.next(time.time_ns() // 1_000_000))


def id_of_time(seconds: float, count: int) -> str:
    """Return a new id for something made at a time: in the order of the times, then of `count`."""
    milliseconds = int(min(max(seconds * 1000, 0), _MAX_MILLISECONDS))
    return _text(milliseconds, count % (1 << _COUNTER_BITS))


def is_id(text: str) -> bool:
    """Return whether a text is an id as a store gives it."""
    return _UUID.fullmatch(text) is not None


def short_of(id: str) -> str:
    """Return the end of an id, as lists show it."""
    return id[-SHORT:]


def packed(id: str) -> bytes:
    """Return an id as 16 bytes."""
    return bytes.fromhex(id.replace("-", ""))


def unpacked(data: bytes) -> str:
    """Return an id of 16 bytes as a text."""
    digits = data.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _text(milliseconds: int, count: int) -> str:
    high, low = count >> _LOW_BITS, count & ((1 << _LOW_BITS) - 1)
    tail = secrets.randbits(_TAIL_BITS)
    value = milliseconds << 80 | 7 << 76 | high << 64 | 2 << 62 | low << _TAIL_BITS | tail
    return unpacked(value.to_bytes(16, "big"))
