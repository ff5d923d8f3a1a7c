"""The one order in which things leave a prompt.

Whole turns of the history, oldest first (layer 2); iterations of the current turn, oldest first,
never the newest (layer 3c); the protected turns; and last the results of the newest iteration are
levelled: the room that is left is shared, and none vanishes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rolling_chat.context.budget import Budget
from rolling_chat.context.config import ContextConfig
from rolling_chat.context.iterations import split_iterations
from rolling_chat.context.tool_results import level
from rolling_chat.context.turns import Entry
from rolling_chat.messages import Message

# What even a result that is cut to nothing keeps: its framing and the line that says so.
_LEAST_RESULT_TOKENS = 40


@dataclass(frozen=True, slots=True)
class Measured:
    """An entry with its cost: `tokens` is the best estimate, `bound` the upper bound."""

    entry: Entry
    tokens: int
    bound: int


def message_of(measured: Measured) -> Message:
    """The message of a measured entry."""
    return measured.entry.message


@dataclass(slots=True)
class Decisions:
    """What leaves (`omitted`: place to layer) and what is levelled (`levels`: place to bound in tokens).

    An invented entry (a repair) has no place of its own; it leaves with its iteration.
    """

    omitted: dict[int, str] = field(default_factory=dict)
    levels: dict[int, int] = field(default_factory=dict)


class Ladder:
    """One walk down the ladder over measured turns, the newest of which is the current one.

    Totals are kept as things leave, so a walk is linear in the messages that it is given.
    """

    def __init__(
        self,
        turns: Sequence[Sequence[Measured]],
        budget: Budget,
        config: ContextConfig,
        decided: Decisions,
    ) -> None:
        self._budget = budget
        self._config = config
        self.decisions = decided
        self._history = [turn for turn in turns[:-1] if not self._is_gone(turn)]
        current = turns[-1] if turns else []
        iterations = split_iterations(current, message_of)
        self._older = [one for one in iterations[:-1] if not self._is_gone(one)]
        self._newest = iterations[-1] if iterations else []
        gone = {id(item) for one in iterations[:-1] if self._is_gone(one) for item in one}
        self._history_tokens = sum(item.tokens for turn in self._history for item in turn)
        self._bound = sum(item.bound for turn in self._history for item in turn)
        self._bound += sum(item.bound for item in current if id(item) not in gone)
        results = sum(item.bound for item in self._newest if item.entry.message.role == "tool")
        # one giant result must not push the conversation out: while others decide, it counts for half
        self._deferred = max(0, results - max(0, budget.available) // 2)

    def descend(self) -> Decisions:
        """Take decisions until the prompt fits, down to the low-water mark."""
        over_history = self._history_tokens > self._history_mark(1.0)
        over_window = self._bound > self._budget.available
        if not (over_history or over_window):
            return self.decisions
        history_mark = self._history_mark(self._config.trim_to if over_history else 1.0)
        window_mark = int(self._budget.available * (self._config.trim_to if over_window else 1.0))
        unprotected = max(0, len(self._history) - self._config.preserve_recent_turns)
        self._drop_turns(self._history[:unprotected], history_mark, window_mark)
        self._drop_iterations(window_mark)
        # protected turns leave only for what must hold, never for the comfort of the mark
        self._drop_turns(self._history[unprotected:], self._history_mark(1.0), self._budget.available)
        self._level_newest()
        return self.decisions

    def _drop_turns(self, turns: Iterable[Sequence[Measured]], history_mark: int, window_mark: int) -> None:
        for turn in turns:
            if self._history_tokens <= history_mark and self._bound - self._deferred <= window_mark:
                return
            self._history_tokens -= sum(item.tokens for item in turn)
            self._omit(turn, "2")

    def _drop_iterations(self, window_mark: int) -> None:
        for iteration in self._older:
            if self._bound - self._deferred <= window_mark:
                return
            self._omit(iteration, "3c")

    def _level_newest(self) -> None:
        over = self._bound - self._budget.available
        results = [
            item for item in self._newest if item.entry.message.role == "tool" and item.entry.index >= 0
        ]
        if over <= 0 or not results:
            return
        sizes = [item.bound for item in results]
        for item, share in zip(results, level(sizes, sum(sizes) - over), strict=True):
            if share < item.bound:
                self.decisions.levels[item.entry.index] = max(share, _LEAST_RESULT_TOKENS)

    def _omit(self, items: Iterable[Measured], layer: str) -> None:
        for item in items:
            self._bound -= item.bound
            if item.entry.index >= 0:
                self.decisions.omitted[item.entry.index] = layer

    def _is_gone(self, items: Iterable[Measured]) -> bool:
        return any(item.entry.index in self.decisions.omitted for item in items)

    def _history_mark(self, share: float) -> int:
        cap = self._budget.history_cap
        return int(cap * share) if cap > 0 else self._budget.window
