"""Select the parts of a long branch that a prompt must read, so that planning costs what the prompt sends.

Messages omitted earlier are not read again, except in turns of which something is still sent. Undecided
messages far beyond the history window are omitted unread. With rolling off, where everything is sent or
nothing, the newest part is enough to show that the branch cannot fit; the size of the rest is inferred from
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from rolling_chat.context.index_ranges import IndexRanges
from rolling_chat.context.turns import is_same_turn, opens_with_system, role_of
from rolling_chat.messages import JsonObject, Message

# Messages: skipping fewer saves nothing noticeable, and a branch without gaps is read in one pass.
MIN_SKIPPED = 500

Branch = Sequence[Message | JsonObject]


@dataclass(frozen=True, slots=True)
class Inferred:
    """Messages `first` to `stop` that were not read, with sizes extrapolated from those that were.

    They would be sent if the prompt could be sent at all.
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
    """Return the ranges of turns from index `first` on that still have messages to send, and the last turn.

    Adjacent turns are merged into one range. If little was omitted, the result is one range.
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
    """Return whether far more than `limit` messages from index `first` on are not omitted."""
    return _count(omitted, first, len(given)) > 2 * max(most, MIN_SKIPPED)


def newest_turns(given: Branch, first: int, omitted: IndexRanges, most: int) -> int:
    """Return where the newest turns with at most `limit` messages begin, not counting a running turn."""
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
    """Return the start index of the newest turns that exceed `max_tokens`; `first` if all turns fit."""
    total, index = 0, len(given)
    while index > first:
        index -= 1
        total += size(given[index])
        if total > most:
            return turn_start(given, index, first)
    return first


def first_request(given: Branch, first: int, excluded: Set[int]) -> int:
    """Return the index of the first user request from `first` on that is sent; -1 if there is none."""
    requests = (index for index in range(first, len(given)) if index not in excluded)
    return next((index for index in requests if role_of(given[index]) not in {"assistant", "tool"}), -1)


def turn_start(given: Branch, index: int, first: int) -> int:
    """Return the start index of the turn that contains the message at `index`, but at least `first`."""
    while index > first and not _begins_turn(given, index):
        index -= 1
    return index


def turn_end(given: Branch, index: int) -> int:
    """Return the first index from `index` on at which a turn begins; the end of the branch if none does."""
    while index < len(given) and not _begins_turn(given, index):
        index += 1
    return index


def _begins_turn(given: Branch, index: int) -> bool:
    """Return whether a turn begins here regardless of what came before; false for one sent into a turn."""
    message = given[index]
    if role_of(message) in {"assistant", "tool"} or is_same_turn(message):
        return False
    return index > 0 or not opens_with_system(given)


def _runs(given: Branch) -> bool:
    """Return whether the last turn is still waiting for its answer."""
    last = given[-1]
    return role_of(last) != "assistant" or bool(_calls(last))


def _calls(message: Message | JsonObject) -> Sequence[object]:
    return message.tool_calls if isinstance(message, Message) else message.get("tool_calls") or ()
