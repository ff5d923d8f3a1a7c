"""A tool's view of the conversation, and the ids of its messages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from rolling_chat.messages import Message


class Counter(Protocol):
    """A token counter, the same that limits tool results."""

    def count_text(self, text: str) -> int:
        """The tokens of `text`."""
        ...

    def count_message(self, message: Message) -> int:
        """The tokens of a whole message."""
        ...


class Memory(Protocol):
    """Read access to the session's branch, for the recall tool.

    A message's index in it counts from 1: `r1` is the first.
    """

    async def branch(self) -> Sequence[Message]:
        """Return the messages from the first to the head, reading missing ones of a long session."""
        ...

    @property
    def excluded(self) -> frozenset[str]:
        """The ids of messages that are hidden from the model."""
        ...

    @property
    def cap(self) -> int:
        """The maximum size of one tool result, in tokens."""
        ...

    @property
    def estimator(self) -> Counter:
        """The token counter."""
        ...


_ID = re.compile(r"\[?(?:recall:\s*)?r(\d{1,9})(?: lines? [\d, -]+)?\]?", re.IGNORECASE)


def index_named(text: str) -> int | None:
    """Parse a message's index from typed text (`r17`, `[recall: r17 lines 2-9]`); None if it has none."""
    match = _ID.fullmatch(text.strip())
    return int(match[1]) if match else None
