"""Sizes that the model itself reported: of whole prompts, of messages in them, and of its own replies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rolling_chat.context.calibration import MAX_RATIO, MIN_RATIO, NOT_CALIBRATED
from rolling_chat.context.tokens import FamilyEstimator
from rolling_chat.messages import Message, count_characters

# Tokens that a message and each of its calls were recorded to take beyond what was reported of them.
_MESSAGE_SURPLUS, _CALL_SURPLUS = 12, 64

# The index of a message in the prompt, and how many characters were sent of it. One of another length is
# another message, or another form of it: the size of one says nothing about the other.
SizeKey: TypeAlias = tuple[int, int]
TokensByKey: TypeAlias = Mapping[SizeKey, int]

_NO_SIZES: TokensByKey = {}


class SizeTable(Mapping[SizeKey, int]):
    """Hold sizes that do not change; one with a few more shares them instead of copying all."""

    __slots__ = ("_newer", "_older")

    def __init__(self, older: TokensByKey = _NO_SIZES, newer: TokensByKey = _NO_SIZES) -> None:
        """Those in `newer` come before the `older` ones."""
        self._older = older
        self._newer = newer

    def with_sizes(self, sizes: TokensByKey) -> SizeTable:
        """Return the table with `sizes` added, which replace older ones."""
        newer = {**self._newer, **sizes}
        if len(newer) ** 2 <= len(self._older):
            return SizeTable(self._older, newer)
        return SizeTable({**self._older, **newer})

    def __getitem__(self, key: SizeKey) -> int:
        size = self._newer.get(key)
        return self._older[key] if size is None else size

    def __iter__(self) -> Iterator[SizeKey]:
        yield from self._older
        yield from (key for key in self._newer if key not in self._older)

    def __len__(self) -> int:
        return len(self._older) + sum(key not in self._older for key in self._newer)


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Hold the last token count that `model` reported for a whole prompt.

    `fixed` is the part for system message and tools, whose plain estimate was `estimate`."""

    model: str
    total: int
    fixed: int
    estimate: int


@dataclass(frozen=True, slots=True)
class MeasuredSizes:
    """Hold what one model reported of messages, in tokens.

    `sizes` are of messages in prompts that it counted. `replies` are of its own replies that no prompt
    has been counted with yet: what it said it had written, as `reply_size` takes it.
    """

    model: str = ""
    sizes: SizeTable = field(default_factory=SizeTable)
    replies: SizeTable = field(default_factory=SizeTable)

    def of(self, model: str) -> MeasuredSizes:
        """Return the sizes if they are `model`'s, else none."""
        return self if self.model == model else MeasuredSizes(model)

    def add(self, sizes: TokensByKey) -> MeasuredSizes:
        """Return the sizes with `sizes` added, which replace older ones."""
        return replace(self, sizes=self.sizes.with_sizes(sizes)) if sizes else self

    def add_replies(self, replies: TokensByKey) -> MeasuredSizes:
        """Return the sizes with those of `replies` added."""
        return replace(self, replies=self.replies.with_sizes(replies)) if replies else self

    def find(self, index: int, message: Message) -> int | None:
        """Return the measured tokens of what is sent of the message at `index`, None if unknown."""
        return self.sizes.get((index, characters_of(message)))

    def find_reply(self, index: int, message: Message) -> int | None:
        """Return the tokens that the model reported when it wrote the message at `index`, None if unknown."""
        return self.replies.get((index, characters_of(message))) if self.replies else None


NOTHING_MEASURED = MeasuredSizes()


def characters_of(message: Message) -> int:
    """Return the length of a message's text and call arguments, in characters."""
    return count_characters(message) + sum(len(call.arguments) for call in message.tool_calls)


def reply_size(message: Message, written: int, estimator: FamilyEstimator) -> int | None:
    """Return the tokens that a reply takes in the next request, from the `written` ones that were reported.

    `written` leaves out reasoning that is not sent back; the framing of a message is added. None for a
    report that can be no count of this text: 0, a part, or hidden reasoning counted with it. That is
    recognized by the upper bound of the text, where the model's tokenizer is known well enough for one.
    """
    if written <= 0:
        return None
    size = written + estimator.family.framing
    plain = replace(estimator, calibration=NOT_CALIBRATED)
    if not MIN_RATIO <= size / max(1, plain.count_message(message)) <= MAX_RATIO:
        return None
    bound = max(one.bound_message(message) for one in (plain, estimator))
    is_hidden = estimator.family.encoding and size > reply_bound(message, bound)
    return None if is_hidden else size


def reply_bound(message: Message, size: int) -> int:
    """Return the most tokens that a reply of the reported `size` was seen to take in the next request."""
    return size + _MESSAGE_SURPLUS + _CALL_SURPLUS * len(message.tool_calls)
