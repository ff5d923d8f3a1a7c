"""The error raised when a request cannot be made to fit."""

from __future__ import annotations

from collections.abc import Sequence

from rolling_chat.context.plan import ContextPlan
from rolling_chat.context.report import PromptReport


class ContextOverflowError(ValueError):
    """Raised for a request that does not fit the context window and cannot be made to fit.

    `current` is the prompt's upper bound and `maximum` its limit, in tokens. `largest` lists the biggest
    parts with their tokens, `smallest_window` is the smallest window that would be enough, and `report`
    describes the refused prompt. `plan` contains the earlier decisions and can be passed to the next call.
    """

    def __init__(
        self,
        *,
        current: int,
        maximum: int,
        largest: Sequence[tuple[str, int]],
        smallest_window: int,
        report: PromptReport,
        plan: ContextPlan | None = None,
    ) -> None:
        parts = ", ".join(f"{name} {tokens:,}" for name, tokens in largest)
        super().__init__(
            f"Cannot fit request within context limit. Current: {current} tokens, Max: {maximum} tokens. "
            "Please narrow the scope or start a new session. "
            f"Largest: {parts}. The smallest window that would do: {smallest_window:,} tokens."
        )
        self.current = current
        self.maximum = maximum
        self.largest = tuple(largest)
        self.smallest_window = smallest_window
        self.report = report
        self.plan = plan
