"""What is left of a branch that was mended, after what left it: nothing stands for what is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rolling_chat.context.ranges import Ranges
from rolling_chat.context.turns import REPLY_LEFT, Entry, without_idle_fillers
from rolling_chat.messages import Message


def kept_of(entries: Sequence[Entry], omitted: Ranges) -> Iterator[Entry]:
    """The entries that were not omitted; an invented one leaves with what it was invented for."""
    turn: list[Entry] = []
    for entry in entries:
        if entry.opens_turn:
            yield from _kept_of_past_turn(turn, omitted)
            turn = []
        turn.append(entry)
    yield from _kept_of_turn(turn, omitted)


def _kept_of_past_turn(turn: list[Entry], omitted: Ranges) -> Iterator[Entry]:
    kept = list(_kept_of_turn(turn, omitted))
    yield from kept
    last = kept[-1].message if kept else None
    if last is not None and (last.role != "assistant" or last.tool_calls):
        yield Entry(-1, Message("assistant", REPLY_LEFT))


def _kept_of_turn(turn: Sequence[Entry], omitted: Ranges) -> Iterator[Entry]:
    layers = [omitted.get(entry.index) for entry in turn if entry.index >= 0]
    if layers and all(layers):
        return
    yield from without_idle_fillers(list(_not_omitted(turn, omitted)))


def _not_omitted(turn: Sequence[Entry], omitted: Ranges) -> Iterator[Entry]:
    open_calls: set[str] = set()
    for entry in turn:
        message, is_omitted = entry.message, entry.index in omitted
        if message.role != "tool":
            # ids are used again: a call that left must not answer to the name of an older one
            open_calls = set() if is_omitted else {call.id for call in message.tool_calls}
        if is_omitted or (message.role == "tool" and message.tool_call_id not in open_calls):
            continue
        yield entry


def without_their_call(fresh: Sequence[Entry], kept: Sequence[Entry], omitted: Ranges) -> Iterator[int]:
    """The places of results whose call left while they answered none: what stood between is excluded."""
    known = {entry.index for entry in kept} | {-1}
    return (entry.index for entry in fresh if entry.index not in known and entry.index not in omitted)
