"""Sizes reported by the model itself: of whole prompts, of their messages, and of its own replies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from rolling_chat.context.calibration import MAX_RATIO, MIN_RATIO, NOT_CALIBRATED
from rolling_chat.context.tokens import FamilyEstimator
from rolling_chat.messages import Message, count_characters

# Tokens that a message and each of its calls were recorded to take beyond their reported size.
_MESSAGE_SURPLUS, _CALL_SURPLUS = 12, 64

# The index of a message in the branch, and how many characters of it were sent. Another length means another
# message or another form of it, about which a measured size says nothing.
SizeKey: TypeAlias = tuple[int, int]
TokensByKey: TypeAlias = Mapping[SizeKey, int]

_NO_SIZES: TokensByKey = {}


class SizeTable(Mapping[SizeKey, int]):
    """An immutable table of sizes; adding a few sizes shares the old table instead of copying it."""

    __slots__ = ("_newer", "_older")

    def __init__(self, older: TokensByKey = _NO_SIZES, newer: TokensByKey = _NO_SIZES) -> None:
        """Entries in `newer` take precedence over `older` ones."""
        self._older = older
        self._newer = newer

    def with_sizes(self, sizes: TokensByKey) -> SizeTable:
        """Return the table with `sizes` added; they replace older entries."""
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
    """The last token count that `model` reported for a whole prompt.

    `fixed` is the part for system message and tools, whose plain estimate was `estimate`."""

    model: str
    total: int
    fixed: int
    estimate: int


@dataclass(frozen=True, slots=True)
class MeasuredSizes:
    """Message sizes reported by one model, in tokens.

    `sizes` are sizes of messages in prompts that it counted. `replies` are sizes of its own replies,
    converted by `reply_size`, that no counted prompt has included yet.
    """

    model: str = ""
    sizes: SizeTable = field(default_factory=SizeTable)
    replies: SizeTable = field(default_factory=SizeTable)

    def of(self, model: str) -> MeasuredSizes:
        """Return these sizes if they belong to `model`, else an empty instance."""
        return self if self.model == model else MeasuredSizes(model)

    def add(self, sizes: TokensByKey) -> MeasuredSizes:
        """Return a copy with `sizes` added; they replace older entries."""
        return replace(self, sizes=self.sizes.with_sizes(sizes)) if sizes else self

    def add_replies(self, replies: TokensByKey) -> MeasuredSizes:
        """Return a copy with reply sizes added."""
        return replace(self, replies=self.replies.with_sizes(replies)) if replies else self

    def find(self, index: int, message: Message) -> int | None:
        """Return the measured tokens of the sent form of the message at `index`; None if unknown."""
        return self.sizes.get((index, characters_of(message)))

    def find_reply(self, index: int, message: Message) -> int | None:
        """Return the tokens that the model reported when it wrote the message at `index`; None if unknown."""
        return self.replies.get((index, characters_of(message))) if self.replies else None


NOTHING_MEASURED = MeasuredSizes()


def characters_of(message: Message) -> int:
    """Return the length of a message's text and call arguments, in characters."""
    return count_characters(message) + sum(len(call.arguments) for call in message.tool_calls)


def reply_size(message: Message, written: int, estimator: FamilyEstimator) -> int | None:
    """Return the tokens that a reply takes in the next request, given the `written` tokens reported for it.

    `written` excludes reasoning that is not sent back; the framing of a message is added. Return None if the
    report cannot be a count of this text: 0, a partial count, or one that includes hidden reasoning. The
    upper bound of the text reveals the latter, if the model's tokenizer is known well enough.
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
    """Return the most tokens that a reply of reported `size` was observed to take in the next request."""
    return size + _MESSAGE_SURPLUS + _CALL_SURPLUS * len(message.tool_calls)
