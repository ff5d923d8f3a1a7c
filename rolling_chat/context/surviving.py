"""Decide what survives of a turn when messages are omitted: invented messages go with their counterparts.

- An invented result is dropped with its call.
- An invented request or reply is dropped if nothing real is left of its turn.
- A filler between two answers is kept only while both answers are.
- A past turn whose answer was omitted ends with a placeholder reply, because another request follows.

`surviving_of` applies these rules to a branch whose omissions are known; `working_prompt` applies them step
by step during a trim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from rolling_chat.context.index_ranges import IndexRanges
from rolling_chat.context.repair import REPLY_OMITTED, NormalizedMessage
from rolling_chat.messages import Message

STAND_IN_REPLY = NormalizedMessage(-1, Message("assistant", REPLY_OMITTED))


class _ItemLike(Protocol):
    """A normalized message, or the prompt item made from it."""

    @property
    def index(self) -> int: ...
    @property
    def message(self) -> Message: ...
    @property
    def opens_turn(self) -> bool: ...


AnyItem = TypeVar("AnyItem", bound=_ItemLike)


def is_filler(item: _ItemLike) -> bool:
    """Return whether this is a request that was invented to separate two answers."""
    return item.index < 0 and item.message.role == "user" and not item.opens_turn


def without_idle_fillers(turn: Sequence[AnyItem]) -> list[AnyItem]:
    """Drop the fillers that no longer separate two answers."""
    kept: list[AnyItem] = []
    others = [item for item in turn if not is_filler(item)]
    followed_by = dict(zip(map(id, others), others[1:], strict=False))
    for item in turn:
        if not is_filler(item):
            kept.append(item)
            continue
        last = kept[-1] if kept else None
        if last is None or is_filler(last) or last.message.role != "assistant" or last.message.tool_calls:
            continue
        following = followed_by.get(id(last))
        if following is not None and following.message.role == "assistant":
            kept.append(item)
    return kept


def is_answer(item: _ItemLike) -> bool:
    """Return whether this is an assistant message without tool calls, which ends a turn."""
    return item.message.role == "assistant" and not item.message.tool_calls


def needs_reply(last: _ItemLike) -> bool:
    """Return whether a placeholder reply must follow `last`, the end of a past turn."""
    return not is_answer(last)


def ends_with_invented_reply(turn: Sequence[AnyItem]) -> bool:
    """Return whether the turn was never answered and the repair added a reply."""
    return bool(turn) and turn[-1].index < 0 and is_answer(turn[-1])


def surviving_of(
    normalized_messages: Sequence[NormalizedMessage], omitted: IndexRanges
) -> Iterator[NormalizedMessage]:
    """Apply a plan's omissions to a repaired branch, dropping invented messages with their counterparts."""
    turn: list[NormalizedMessage] = []
    for normalized in normalized_messages:
        if normalized.opens_turn:
            yield from _kept_of_past_turn(turn, omitted)
            turn = []
        turn.append(normalized)
    yield from _kept_of_turn(turn, omitted)


def _kept_of_past_turn(turn: list[NormalizedMessage], omitted: IndexRanges) -> Iterator[NormalizedMessage]:
    kept = list(_kept_of_turn(turn, omitted))
    yield from kept
    if kept and needs_reply(kept[-1]):
        yield STAND_IN_REPLY


def _kept_of_turn(turn: Sequence[NormalizedMessage], omitted: IndexRanges) -> Iterator[NormalizedMessage]:
    layers = [omitted.get(normalized.index) for normalized in turn if normalized.index >= 0]
    if layers and all(layers):
        return
    yield from without_idle_fillers(list(_not_omitted(turn, omitted)))


def _not_omitted(turn: Sequence[NormalizedMessage], omitted: IndexRanges) -> Iterator[NormalizedMessage]:
    open_calls: set[str] = set()
    for normalized in turn:
        message, is_omitted = normalized.message, normalized.index in omitted
        if message.role != "tool":
            # ids may repeat: an omitted call must not answer to the id of an older one
            open_calls = set() if is_omitted else {call.id for call in message.tool_calls}
        if is_omitted or (message.role == "tool" and message.tool_call_id not in open_calls):
            continue
        yield normalized


def omitted_with_call(
    fresh: Sequence[NormalizedMessage], kept: Sequence[NormalizedMessage], omitted: IndexRanges
) -> Iterator[int]:
    """Return the indexes of results whose call was omitted before they could answer it."""
    known = {normalized.index for normalized in kept} | {-1}
    return (
        normalized.index
        for normalized in fresh
        if normalized.index not in known and normalized.index not in omitted
    )
