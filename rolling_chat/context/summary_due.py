"""When the next summary is due, and which turns it takes up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class DuePass:
    """Name the whole turns to summarize next, by index; `first` and `through` are both included."""

    first: int
    through: int


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
    a turn. `memo` as for `build_final_prompt`.
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
    through = _end_of_pass(messages, after, staying) if staying is not None else None
    return DuePass(after, through) if through is not None else None


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


def _turns_back(messages: Sequence[Message], first: int) -> Iterator[range]:
    """The indexes of every turn that begins at `first` or later, the newest first."""
    end = len(messages)
    for index in range(end - 1, first - 1, -1):
        if opens_turn(messages, index):
            yield range(index, end)
            end = index


def _cost(turn: Sequence[Message], sizes: Sizes) -> int:
    return sum(sizes.shape(normalized, Decisions()).tokens for normalized in repair_messages(turn))
