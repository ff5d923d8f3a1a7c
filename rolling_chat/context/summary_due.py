"""When the next summary is due, and which turns it takes up."""

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
"""The most that one pass folds in, unless a single turn is longer."""

MAX_BACKLOG_MESSAGES = 10 * MAX_PASS_MESSAGES
"""What is summarized at least, where more has gathered before it than history may take."""


@dataclass(frozen=True, slots=True)
class DuePass:
    """Name the whole turns to summarize next, by index; `first` and `through` are both included.

    Those in `skipped`, from its first number on and before its second, are not summarized any more.
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
    """Return the turns that the next summary takes up after those that `summary` covers; None if none is due.

    `messages` are the whole branch, as for `build_final_prompt`. A pass is due when the turns that no
    summary covers, sent or not, are more than `usage_threshold` of what history may take; with `early`
    at once. Due are the turns that the next trim would take: all but the newest ones that fit its
    low-water mark, and never the newest of all. A pass folds in some 30 messages, and never less than
    a turn. Where far more has gathered, the newest of it is taken up and the rest skipped, so that the passes
    are few however long the branch. `memo` as for `build_final_prompt`.
    """
    after = summary.through + 1 if summary else int(opens_with_system(messages))
    sizes = Sizes.of(config, model, tools, memo if memo is not None else CountMemo())
    room = max(0, sizes.budget(messages[0] if opens_with_system(messages) else None).history)
    excluded = resolve_pins(messages, pins or Pins()).excluded

    def cost(turn: range) -> int:
        return _cost([messages[index] for index in turn if index not in excluded], sizes)

    turns = _turns_back(messages, after)
    if early:
        staying = next((turn.start for turn in turns), None)
    else:
        costs = ((turn.start, cost(turn)) for turn in turns)
        staying = _first_staying(costs, config.trim_to * room, config.usage_threshold * room)
    if staying is None:
        return None
    first = _start_of_backlog(_turns_back(messages, after, staying), cost, room)
    first = after if first is None else first
    through = _end_of_pass(messages, first, staying)
    return DuePass(first, through, (after, first) if first > after else None) if through is not None else None


def _first_staying(costs: Iterable[tuple[int, int]], mark: float, threshold: float) -> int | None:
    """Return where the newest turns that fit `mark` begin, given each turn's start and cost, newest first.

    None if all of them are within `threshold`. Stops at the turn that decides it: of a long branch few turns
    are asked for their size. The newest of all always stays.
    """
    total, first = 0, None
    for start, cost in costs:
        total += cost
        first = start if first is None or total <= mark else first
        if total > max(mark, threshold):
            return first
    return first if total > threshold else None


def _start_of_backlog(turns: Iterator[range], cost: Callable[[range], int], room: int) -> int | None:
    """Return where the newest of `turns` begin that are summarized; None if all of them are.

    They are the newest 300 messages, and as many more as history has room for: what is older is in no prompt.
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
    """Return the index of the last message that a pass from `first` on folds in; None for no whole turn."""
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
    """The indexes of every turn that begins at `first` or later, the newest first, all before `end`."""
    end = len(messages) if end is None else end
    for index in range(end - 1, first - 1, -1):
        if opens_turn(messages, index):
            yield range(index, end)
            end = index


def _cost(turn: Sequence[Message], sizes: Sizes) -> int:
    return sum(sizes.shape(normalized, Decisions()).tokens for normalized in repair_messages(turn))
