"""What a model counted of each message: stored with the message, handed to the pipeline as a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rolling_chat.context.pieces import MeasuredSizes, Size, characters_of
from rolling_chat.messages import Message


def known_sizes(planned: Sequence[Message], model: str) -> MeasuredSizes:
    """The sizes that are stored with the messages of a prompt, the system message first."""
    key = _key(model)
    return MeasuredSizes(model).add(
        {
            place: Size(message.counts[key], characters_of(message))
            for place, message in enumerate(planned)
            if key in message.counts
        }
    )


def new_sizes(before: MeasuredSizes, after: MeasuredSizes) -> dict[int, int]:
    """The tokens that a reply has taught, by place in the prompt."""
    return {place: size.tokens for place, size in after.sizes.items() if size is not before.sizes.get(place)}


def remember(branch: Sequence[Message], sizes: Mapping[int, int], model: str) -> None:
    """Note the sizes with the messages of `branch`, the first of which is at place 1, for the store."""
    key = _key(model)
    for place, tokens in sizes.items():
        if 0 < place <= len(branch):
            branch[place - 1].counts[key] = tokens


def _key(model: str) -> str:
    return f"={model}"
