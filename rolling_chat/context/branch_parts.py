"""Select the parts of a long branch that a prompt must read, so that planning costs what the prompt sends.

Messages omitted earlier are not read again, except in turns that are still partly sent. Undecided
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


def parts_with_gaps(branch: Branch, first: int, omitted: IndexRanges) -> list[range]:
    """Return the ranges of turns from index `first` on that still have messages to send, and the last turn.

    Adjacent turns are merged into one range. If little was omitted, the result is one range.
    """
    end = len(branch)
    if first >= end:
        return []
    if end - first - _count_kept(omitted, first, end) < MIN_SKIPPED:
        return [range(first, end)]
    parts: list[range] = []
    for start, stop in (*omitted.gaps(first, end), (end - 1, end)):
        if parts and stop <= parts[-1].stop:
            continue
        begin = start if parts and start <= parts[-1].stop else turn_start(branch, start, first)
        finish = turn_end(branch, stop)
        if parts and begin <= parts[-1].stop:
            begin = parts.pop().start
        parts.append(range(begin, finish))
    return parts


def is_far_beyond(branch: Branch, first: int, omitted: IndexRanges, limit: int) -> bool:
    """Return whether far more than `limit` messages from index `first` on are not omitted."""
    return _count_kept(omitted, first, len(branch)) > 2 * max(limit, MIN_SKIPPED)


def newest_turns(branch: Branch, first: int, omitted: IndexRanges, limit: int) -> int:
    """Return where the newest turns with at most `limit` messages begin, not counting a running turn."""
    end = cut = turn_start(branch, len(branch) - 1, first)
    if not _is_running(branch):
        end = len(branch)
    while cut > first:
        start = turn_start(branch, cut - 1, first)
        if _count_kept(omitted, start, end) > limit:
            break
        cut = start
    return cut


def _count_kept(omitted: IndexRanges, first: int, stop: int) -> int:
    """Count the messages that are not omitted."""
    return sum(end - start for start, end in omitted.gaps(first, stop))


def newest_turns_over(
    branch: Branch, first: int, size: Callable[[Message | JsonObject], int], max_tokens: int
) -> int:
    """Return the start index of the newest turns that exceed `max_tokens`; `first` if all turns fit."""
    total, index = 0, len(branch)
    while index > first:
        index -= 1
        total += size(branch[index])
        if total > max_tokens:
            return turn_start(branch, index, first)
    return first


def first_request(branch: Branch, first: int, excluded: Set[int]) -> int:
    """Return the index of the first user request from `first` on that is sent; -1 if there is none."""
    requests = (index for index in range(first, len(branch)) if index not in excluded)
    return next((index for index in requests if role_of(branch[index]) not in {"assistant", "tool"}), -1)


def turn_start(branch: Branch, index: int, first: int) -> int:
    """Return the start index of the turn that contains the message at `index`, but at least `first`."""
    while index > first and not _begins_turn(branch, index):
        index -= 1
    return index


def turn_end(branch: Branch, index: int) -> int:
    """Return the first index from `index` on at which a turn begins; the end of the branch if none does."""
    while index < len(branch) and not _begins_turn(branch, index):
        index += 1
    return index


def _begins_turn(branch: Branch, index: int) -> bool:
    """Return whether a turn begins here regardless of what came before; false for one sent into a turn."""
    message = branch[index]
    if role_of(message) in {"assistant", "tool"} or is_same_turn(message):
        return False
    return index > 0 or not opens_with_system(branch)


def _is_running(branch: Branch) -> bool:
    """Return whether the last turn is still waiting for its answer."""
    last = branch[-1]
    return role_of(last) != "assistant" or bool(_tool_calls(last))


def _tool_calls(message: Message | JsonObject) -> Sequence[object]:
    return message.tool_calls if isinstance(message, Message) else message.get("tool_calls") or ()
