"""When the next summary is due, and which turns it takes up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

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
    turns = _turns_after(messages, summary.through if summary else -1)
    if len(turns) < 2:
        return None
    sizes = Sizes.of(config, model, tools, memo if memo is not None else CountMemo())
    room = max(0, sizes.budget(messages[0] if opens_with_system(messages) else None).history)
    without = resolve_pins(messages, pins or Pins()).excluded
    costs = [_cost([messages[index] for index in turn if index not in without], sizes) for turn in turns]
    if not early and sum(costs) <= config.usage_threshold * room:
        return None
    newest_first = list(accumulate(reversed(costs)))
    staying = sum(total <= config.trim_to * room for total in newest_first)
    leaving = turns[: len(turns) - max(1, 1 if early else staying)]
    if not leaving:
        return None
    counts = accumulate(map(len, leaving))
    taken = leaving[: max(1, sum(count <= MAX_PASS_MESSAGES for count in counts))]
    first = summary.through + 1 if summary else int(opens_with_system(messages))
    return DuePass(first, taken[-1][-1])


def _cost(turn: Sequence[Message], sizes: Sizes) -> int:
    return sum(sizes.shape(normalized, Decisions()).tokens for normalized in repair_messages(turn))


def _turns_after(messages: Sequence[Message], through: int) -> list[range]:
    """The indexes of every turn that begins behind `through`."""
    starts = [index for index in range(max(0, through + 1), len(messages)) if opens_turn(messages, index)]
    return [range(start, end) for start, end in pairwise([*starts, len(messages)])]
