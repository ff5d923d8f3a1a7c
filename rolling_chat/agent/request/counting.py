"""Counts that are kept with messages: what was counted of the long ones, and what a model has reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from rolling_chat.context.prompt_items import MeasuredSizes, Size, characters_of
from rolling_chat.context.tokens import bounding_estimator
from rolling_chat.messages import Message
from rolling_chat.providers.background_thread import in_background

_LONG = 50_000  # characters: counted in some 5 ms, dense text in ten times that
_NEWEST = 16  # messages among which there may be one that nobody counted


async def count_long(messages: Sequence[Message], model: str) -> None:
    """Count the tokens of long recent messages in the background, storing the counts with them."""
    estimator = bounding_estimator(model)
    for message in uncounted(messages):
        await in_background(partial(estimator.raw_message, message))


def uncounted(messages: Sequence[Message]) -> list[Message]:
    """Return the long messages among the newest that were never counted."""
    return [message for message in messages[-_NEWEST:] if not message.counts and len(message.text) > _LONG]


def known_sizes(planned: Sequence[Message], model: str) -> MeasuredSizes:
    """Return the sizes stored with the messages of a prompt, the system message first."""
    key = _key(model)
    return MeasuredSizes(model).add(
        {
            place: Size(message.counts[key], characters_of(message))
            for place, message in enumerate(planned)
            if key in message.counts
        }
    )


def new_sizes(before: MeasuredSizes, after: MeasuredSizes) -> dict[int, int]:
    """Return the tokens newly measured by a reply, by index in the prompt."""
    return {place: size.tokens for place, size in after.sizes.items() if size is not before.sizes.get(place)}


def remember(branch: Sequence[Message], sizes: Mapping[int, int], model: str) -> None:
    """Add the measured sizes to the messages of `branch`, whose first has index 1, to be stored."""
    key = _key(model)
    for place, tokens in sizes.items():
        if 0 < place <= len(branch):
            branch[place - 1].counts[key] = tokens


def _key(model: str) -> str:
    return f"={model}"
