"""Values as every store keeps them, whatever a provider reported."""

from __future__ import annotations

import math
from dataclasses import replace

from rolling_chat.messages import Message
from rolling_chat.sessions.ids import is_id
from rolling_chat.sessions.records import StoreError
from rolling_chat.text import one_line

REASONING = "reasoning_content"

# what fits into 64 bits with a sign, the whole numbers of databases
_MAX_WHOLE = 2**63 - 1


def whole(value: int) -> int:
    """Clamp a reported count to what a database can store: 0 or more, at most 63 bits."""
    return min(max(int(value), 0), _MAX_WHOLE)


def real(value: float) -> float:
    """Convert a time or a duration to a finite number that a database can store."""
    return float(value) if math.isfinite(value) else 0.0


def require_id(id: str, what: str) -> str:
    """Return the id of a session or a message that comes from elsewhere. Raises StoreError if it is none."""
    if not is_id(id):
        raise StoreError(f"{one_line(id, 40)!r} is no id that a {what} can have")
    return id


def with_streamed(message: Message, text: str, reasoning: str) -> Message:
    """Return `message` holding no less than what was written: providers' last words may lack it."""
    extras = message.extras or {}
    if reasoning and REASONING not in extras and "thinking_blocks" not in extras:
        message = replace(message, extras={**extras, REASONING: reasoning})
    if text and not message.content:
        message = replace(message, content=text)
    return message
