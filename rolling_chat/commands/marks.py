"""The marks of pinned and excluded messages: a sign and words, never color alone."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rolling_chat.agent import PinScope


class Mark(StrEnum):
    """The user's mark on a message: pinned, kept because of a pin, or excluded; empty if there is none."""

    NONE = ""
    PINNED = "◆ pinned"
    ALONG = "◇ stays with a pin"
    EXCLUDED = "∅ excluded"

    @property
    def sign(self) -> str:
        """The mark as a sign."""
        return self[:1]

    @property
    def words(self) -> str:
        """The mark in words."""
        return self[2:]


def mark_of(message_id: str, held: PinScope | None) -> Mark:
    """Return the mark of a message."""
    if held is None or not message_id:
        return Mark.NONE
    if message_id in held.excluded:
        return Mark.EXCLUDED
    if message_id in held.pinned:
        return Mark.PINNED
    return Mark.ALONG if message_id in held.along else Mark.NONE
