"""Ids that two machines never make alike, and that sort by the time they were made."""

from __future__ import annotations

import secrets
import threading
import time
import uuid

# Crockford's letters: none that is taken for another
_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_CHARACTERS = 10

_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """Return a UUID of version 7, above those that this process made before."""
    global _last  # noqa: PLW0603 - one clock for the whole process
    with _lock:
        # 48 bits of milliseconds and 12 of their parts, as RFC 9562 proposes
        now = time.time_ns() * 4096 // 1_000_000
        _last = now = max(now, _last + 1)
    value = (now >> 12) << 80 | 0x7 << 76 | (now & 0xFFF) << 64 | 0b10 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=value))


def new_session_id() -> str:
    """Return an id that people can type."""
    return "".join(secrets.choice(_LETTERS) for _ in range(_ID_CHARACTERS))
