"""One step of a trim, and the sizes at which a trim stops."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rolling_chat.context.working_prompt import Totals


@dataclass(frozen=True, slots=True)
class TrimStep:
    """Describe one thing that a trim may omit or shorten.

    `for_history` says that it makes history smaller, and so is taken for the history's sake too; all
    that do must say so, or a larger window, which does not need them, would drop more in their stead.
    `for_count` is the step of layer 1, which is taken for the number of messages in the history and for
    nothing else, and no other step is taken for that.
    `is_final` says that it does not come back where it would fit after all.
    """

    take: Callable[[], None]
    for_history: bool = True
    for_count: bool = False
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class TrimTargets:
    """Hold where a trim stops: number of history messages, history tokens, prompt tokens."""

    count: float
    history: float
    window: float

    def are_exceeded(self, totals: Totals, deferred: float = 0) -> bool:
        """Return whether `totals` exceed the targets, ignoring `deferred` bound tokens."""
        is_full = totals.bound - deferred > self.window
        return is_full or totals.history > self.history or totals.in_history > self.count

    def for_step(self, step: TrimStep) -> TrimTargets:
        """Return those targets that matter to `step`; the others become infinite."""
        if step.for_count:
            return TrimTargets(self.count, math.inf, math.inf)
        return TrimTargets(math.inf, self.history if step.for_history else math.inf, self.window)
