"""The parts of a long branch that a prompt has to look at, so that it costs what it sends and no more.

What was omitted before is not looked at again, but for the turns of which something is still sent. What no
plan has decided yet, and what is far beyond the history window, is omitted unseen. With rolling off, where
all is sent or nothing, the newest part tells that nothing can be: the size of the rest is inferred from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from rolling_chat.context.index_ranges import IndexRanges
from rolling_chat.context.turns import is_same_turn, opens_with_system, role_of
from rolling_chat.messages import JsonObject, Message

# Messages: to leave out fewer saves nothing that is felt, and a branch without gaps is looked at in one go.
MIN_SKIPPED = 500

Branch = Sequence[Message | JsonObject]


@dataclass(frozen=True, slots=True)
class Inferred:
    """Hold the messages that are sent, if anything is, and were not looked at: indexes `first` to `stop`.

    `tokens`, `bound` and `turns` are those of as many messages like the ones that were looked at.
    """

    first: int = 0
    stop: int = 0
    count: int = 0
    tokens: int = 0
    bound: int = 0
    turns: int = 0

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and self.first <= index < self.stop


NOTHING_INFERRED = Inferred()


def parts_with_gaps(given: Branch, first: int, omitted: IndexRanges) -> list[range]:
    """Return the turns from index `first` on of which something is not omitted, and the last turn.

    Turns that follow each other are one part. All of it is one where little was omitted.
    """
    end = len(given)
    if first >= end:
        return []
    if end - first - _count(omitted, first, end) < MIN_SKIPPED:
        return [range(first, end)]
    parts: list[range] = []
    for start, stop in (*omitted.gaps(first, end), (end - 1, end)):
        if parts and stop <= parts[-1].stop:
            continue
        begin = start if parts and start <= parts[-1].stop else turn_start(given, start, first)
        finish = turn_end(given, stop)
        if parts and begin <= parts[-1].stop:
            begin = parts.pop().start
        parts.append(range(begin, finish))
    return parts


def is_far_beyond(given: Branch, first: int, omitted: IndexRanges, most: int) -> bool:
    """Return whether far more than `most` messages from `first` on are not omitted."""
    return _count(omitted, first, len(given)) > 2 * max(most, MIN_SKIPPED)


def newest_turns(given: Branch, first: int, omitted: IndexRanges, most: int) -> int:
    """Return where the newest turns begin that have at most `most` messages; the one that runs is not one."""
    end = cut = turn_start(given, len(given) - 1, first)
    if not _runs(given):
        end = len(given)
    while cut > first:
        start = turn_start(given, cut - 1, first)
        if _count(omitted, start, end) > most:
            break
        cut = start
    return cut


def _count(omitted: IndexRanges, first: int, stop: int) -> int:
    """Count the messages that are not omitted."""
    return sum(end - start for start, end in omitted.gaps(first, stop))


def newest_beyond(given: Branch, first: int, size: Callable[[Message | JsonObject], int], most: int) -> int:
    """Return where the newest turns begin that have more than `most` tokens; `first` if all have less."""
    total, index = 0, len(given)
    while index > first:
        index -= 1
        total += size(given[index])
        if total > most:
            return turn_start(given, index, first)
    return first


def first_request(given: Branch, first: int, excluded: Set[int]) -> int:
    """Return the index of the first request from `first` on that is sent; -1 if there is none."""
    requests = (index for index in range(first, len(given)) if index not in excluded)
    return next((index for index in requests if role_of(given[index]) not in {"assistant", "tool"}), -1)


def turn_start(given: Branch, index: int, first: int) -> int:
    """Return where the turn of the message at `index` begins, not before `first`."""
    while index > first and not _begins_turn(given, index):
        index -= 1
    return index


def turn_end(given: Branch, index: int) -> int:
    """Return the index of the first message from `index` on that begins a turn; the end if there is none."""
    while index < len(given) and not _begins_turn(given, index):
        index += 1
    return index


def _begins_turn(given: Branch, index: int) -> bool:
    """Does a turn begin here whatever came before? What was sent into a turn may begin one as well."""
    message = given[index]
    if role_of(message) in {"assistant", "tool"} or is_same_turn(message):
        return False
    return index > 0 or not opens_with_system(given)


def _runs(given: Branch) -> bool:
    """Is the last turn still to be answered?"""
    last = given[-1]
    return role_of(last) != "assistant" or bool(_calls(last))


def _calls(message: Message | JsonObject) -> Sequence[object]:
    return message.tool_calls if isinstance(message, Message) else message.get("tool_calls") or ()
