"""Long messages are counted off the event loop, before anybody asks for a report that needs their count."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rolling_chat.context.tokens import bounding_estimator
from rolling_chat.messages import Message
from rolling_chat.providers.background import in_background

_LONG = 50_000  # characters: counted in some 5 ms, dense text in ten times that
_NEWEST = 16  # messages among which there may be one that nobody counted


async def count_long(messages: Sequence[Message], model: str) -> None:
    """Count the long ones among the newest; the counts are remembered with the messages."""
    estimator = bounding_estimator(model)
    for message in uncounted(messages):
        await in_background(partial(estimator.raw_message, message))


def uncounted(messages: Sequence[Message]) -> list[Message]:
    """The long ones among the newest that were never counted."""
    return [message for message in messages[-_NEWEST:] if not message.counts and len(message.text) > _LONG]
