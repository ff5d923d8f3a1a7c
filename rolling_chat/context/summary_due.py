"""Decide when the next summary is due, and which turns it covers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from rolling_chat.context.config import ContextConfig
from rolling_chat.context.count_memo import CountMemo
from rolling_chat.context.pins import Pins, resolve_pins
from rolling_chat.context.prompt_items import Decisions, Sizes
from rolling_chat.context.repair import repair_messages
from rolling_chat.context.summary_text import Summary
from rolling_chat.context.tokens import Tools
from rolling_chat.context.turns import opens_turn, opens_with_system
from rolling_chat.messages import Message

MAX_PASS_MESSAGES = 30
"""The most messages that one pass summarizes, unless a single turn is longer."""

MAX_BACKLOG_MESSAGES = 10 * MAX_PASS_MESSAGES
"""How many of a backlog's newest messages are always summarized, even if older ones are skipped."""


@dataclass(frozen=True, slots=True)
class DuePass:
    """The whole turns to summarize next, by index; `first` and `through` are both included.

    `skipped` is the range, start inclusive and end exclusive, of messages that will never be summarized.
    """

    first: int
    through: int
    skipped: tuple[int, int] | None = None


def due_pass(
    messages: Sequence[Message],
    config: ContextConfig,
    *,
    tools: Tools = None,
    model: str | None = None,
    summary: Summary | None = None,
    pins: Pins | None = None,
    early: bool = False,
    memo: CountMemo | None = None,
) -> DuePass | None:
    """Return the turns that the next summary adds to those that `summary` covers; None if none is due.

    `messages` are the whole branch, as for `build_final_prompt`. A pass is due when the turns without a
    summary, sent or not, exceed `usage_threshold` of the room for history; with `early`, immediately. It
    covers the turns that the next trim would omit: all except the newest ones that fit its low-water mark,
    and never the newest. A pass summarizes about 30 messages and at least one turn. Of a far larger backlog,
    only the newest part is summarized and the rest skipped, so that the number of passes stays small however
    long the branch. `memo` is as for `build_final_prompt`.
    """
    after = summary.through + 1 if summary else int(opens_with_system(messages))
    sizes = Sizes.of(config, model, tools, memo if memo is not None else CountMemo())
    room = max(0, sizes.budget(messages[0] if opens_with_system(messages) else None).history)
    excluded = resolve_pins(messages, pins or Pins()).excluded

    def cost(turn: range) -> int:
        return _cost([messages[index] for index in turn if index not in excluded], sizes)

    turns = _turns_back(messages, after)
    if early:
        first_kept = next((turn.start for turn in turns), None)
    else:
        costs = ((turn.start, cost(turn)) for turn in turns)
        first_kept = _first_kept(costs, config.trim_to * room, config.usage_threshold * room)
    if first_kept is None:
        return None
    first = _start_of_backlog(_turns_back(messages, after, first_kept), cost, room)
    first = after if first is None else first
    through = _end_of_pass(messages, first, first_kept)
    return DuePass(first, through, (after, first) if first > after else None) if through is not None else None


def _first_kept(costs: Iterable[tuple[int, int]], mark: float, threshold: float) -> int | None:
    """Return where the newest turns that fit `mark` begin, given each turn's start and cost, newest first.

    None if all turns together are within `threshold`. Stops at the turn that decides this, so that few turns
    of a long branch are measured. The newest turn always stays.
    """
    total, first = 0, None
    for start, cost in costs:
        total += cost
        first = start if first is None or total <= mark else first
        if total > max(mark, threshold):
            return first
    return first if total > threshold else None


def _start_of_backlog(turns: Iterator[range], cost: Callable[[range], int], room: int) -> int | None:
    """Return where the turns to summarize begin; None if all of them are to be summarized.

    These are the newest 300 messages plus as many as history has room for; older ones are in no prompt.
    """
    newest = list[range]()
    for turn in turns:
        if not newest or newest[0].stop - newest[-1].start < MAX_BACKLOG_MESSAGES:
            newest.append(turn)
            continue
        total = sum(map(cost, newest))
        for older in chain((turn,), turns):
            if total > room:
                return older.stop
            total += cost(older)
    return None


def _end_of_pass(messages: Sequence[Message], first: int, end: int) -> int | None:
    """Return the index of the last message in a pass that starts at `first`; None without a whole turn."""
    begin = next((index for index in range(first, end) if opens_turn(messages, index)), None)
    if begin is None:
        return None
    through = None
    for index in range(begin + 1, end + 1):
        if index == end or opens_turn(messages, index):
            if through is not None and index - begin > MAX_PASS_MESSAGES:
                break
            through = index - 1
    return through


def _turns_back(messages: Sequence[Message], first: int, end: int | None = None) -> Iterator[range]:
    """Yield the index range of each turn that begins at `first` or later, newest first, all before `end`."""
    end = len(messages) if end is None else end
    for index in range(end - 1, first - 1, -1):
        if opens_turn(messages, index):
            yield range(index, end)
            end = index


def _cost(turn: Sequence[Message], sizes: Sizes) -> int:
    return sum(sizes.shape(normalized, Decisions()).tokens for normalized in repair_messages(turn))
