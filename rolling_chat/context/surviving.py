"""What is left of a branch that was repaired, after what left it: nothing stands for what is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rolling_chat.context.index_ranges import IndexRanges
from rolling_chat.context.turns import REPLY_LEFT, NormalizedMessage, without_idle_fillers
from rolling_chat.messages import Message


def surviving_of(
    normalized_messages: Sequence[NormalizedMessage], omitted: IndexRanges
) -> Iterator[NormalizedMessage]:
    """The normalized messages that were not omitted; an invented one leaves with what it was invented for."""
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
    last = kept[-1].message if kept else None
    if last is not None and (last.role != "assistant" or last.tool_calls):
        yield NormalizedMessage(-1, Message("assistant", REPLY_LEFT))


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
            # ids are used again: a call that left must not answer to the name of an older one
            open_calls = set() if is_omitted else {call.id for call in message.tool_calls}
        if is_omitted or (message.role == "tool" and message.tool_call_id not in open_calls):
            continue
        yield normalized


def without_their_call(
    fresh: Sequence[NormalizedMessage], kept: Sequence[NormalizedMessage], omitted: IndexRanges
) -> Iterator[int]:
    """The indexes of results whose call left while they answered none: what stood between is excluded."""
    known = {normalized.index for normalized in kept} | {-1}
    return (
        normalized.index
        for normalized in fresh
        if normalized.index not in known and normalized.index not in omitted
    )
