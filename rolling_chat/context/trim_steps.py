"""Define the steps of a trim, and the sizes at which it stops."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rolling_chat.context.working_prompt import Totals


@dataclass(frozen=True, slots=True)
class TrimStep:
    """A step of a trim, which omits or shortens one thing.

    `for_history` means that the step shrinks history, so that it also serves the limit on history. Every such
    step must be marked: otherwise a larger window, which does not need it, would drop more instead.
    `for_count` marks the steps of layer 1, which serve only the limit on the number of history messages; no
    other step serves it. `is_final` means that the step is not undone even if there is room.
    """

    take: Callable[[], None]
    for_history: bool = True
    for_count: bool = False
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class TrimTargets:
    """The sizes at which a trim stops: history messages, history tokens, prompt tokens."""

    count: float
    history: float
    window: float

    def are_exceeded(self, totals: Totals, deferred: float = 0) -> bool:
        """Return whether `totals` exceed the targets, ignoring `deferred` bound tokens."""
        is_full = totals.bound - deferred > self.window
        return is_full or totals.history > self.history or totals.in_history > self.count

    def for_step(self, step: TrimStep) -> TrimTargets:
        """Return the targets that `step` serves; the others become infinite."""
        if step.for_count:
            return TrimTargets(self.count, math.inf, math.inf)
        return TrimTargets(math.inf, self.history if step.for_history else math.inf, self.window)
