"""The prompt report: what became of every message of one prompt, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from rolling_chat.context.budget import Budget
from rolling_chat.lazily import Lazily
from rolling_chat.messages import Json, Role

# If the trim mark rose by more than this fraction of the window, the settings changed; the margin shrinks by
# less.
_OTHER_SETTINGS = 10


class Fate(StrEnum):
    """What became of a message; every message of a branch has exactly one fate."""

    SENT = "sent"
    SHORTENED = "shortened"
    MASKED = "masked"
    SUMMARIZED = "summarised"
    SUMMARISED = SUMMARIZED  # its name in earlier versions
    OMITTED = "omitted"
    EXCLUDED = "excluded"
    REPAIRED = "repaired"

    @property
    def word(self) -> str:
        """The word shown on screen; the value is used in JSON and keeps its spelling."""
        return "summarized" if self is Fate.SUMMARIZED else self.value


@dataclass(frozen=True, slots=True)
class Row:
    """The report on one message: its fate, the layer that decided it, its tokens before and after.

    `index` is its position in the given messages; `layer` is "1", "2", "3a", "3b", "3c", "arguments",
    "levelled", "repair" or empty; `reason` is a short clause for people.
    """

    index: int
    id: str
    role: Role
    fate: Fate
    layer: str
    tokens_before: int
    tokens_after: int
    reason: str = ""


Rows: TypeAlias = Lazily[Row]
"""The rows of a report, built on demand because a long session has many."""


@dataclass(frozen=True, slots=True)
class PromptReport:
    """How one request divides the context window, and what became of every message.

    The categories add up to `token_count` + `draft` + `reserve` + `margin`. `bound` is the upper bound that
    the hard rule tests: `bound + reserve + margin <= window`. `trim_at` is the size of the prompt (best
    estimate) at which the next trim happens, or with rolling off the refusal. `until_trim` is how much the
    conversation may grow before that, counting a running turn as history. `pace` is the growth per turn: the
    mean of the newest complete turns before any shortening, 0 if there are none. `fates` counts messages by
    fate; `trimmed` means that this prompt made new decisions.
    """

    model: str
    rolling: bool
    window: int
    reserve: int
    margin: int
    system: int
    tools: int
    summary: int
    history: int
    current: int
    bound: int
    within_budget: bool
    history_budget: int
    trim_at: int
    floor: int
    rows: Sequence[Row] = field(default=(), compare=False)
    fates: Mapping[Fate, int] = field(default_factory=lambda: MappingProxyType({}))
    trimmed: bool = False
    draft: int = 0
    exact: bool = False  # the model has counted this conversation; only additions are estimated
    below: int = 0  # tokens by which the true count may be less than `used`...
    above: int = 0  # ...and more, in 99 of 100 requests
    spread: float = 0.0  # the share by which the estimate of one more text may be off
    turns: int = 0
    until_trim: int = 0
    pace: int = 0
    most_turns: int | None = None  # an upper limit on `turns_left`, from an earlier report: see `after`
    stand_ins: int = 0  # tokens at the end of `current` that represent a request or results still to come
    unproven: int = 0  # tokens tested in place of `bound`, for a model of which nothing is known yet
    reduced_reserve: int = 0  # tokens: the smaller reserve that was used because nothing else would fit
    is_history_capped: bool = False  # the cap on history is less than the room in the window
    notes: int = 0  # tokens of `system` for the model's notes...
    names: int = 0  # ...and for names from omitted messages
    inserted: int = 0  # tokens of messages without a row, which a provider needs between two others

    @property
    def token_count(self) -> int:
        """The best estimate of the prompt: messages and tools, without the draft."""
        return self.system + self.tools + self.summary + self.history + self.current

    @property
    def tested(self) -> int:
        """The size that decided whether the prompt fits: its bound, or part of the estimate if unproven."""
        return self.unproven or self.bound

    @property
    def room(self) -> int:
        """The room for the whole prompt, in tokens: W - R - M."""
        return Budget(self.window, self.reserve, self.margin).room

    @property
    def used(self) -> int:
        """The size that the gauge shows: the prompt and the draft."""
        return self.token_count + self.draft

    @property
    def band(self) -> float:
        """The possible difference between the true count and `used`, as a share of `used`."""
        return max(self.below, self.above) / self.used if self.used else 0.0

    @property
    def percent(self) -> float:
        """`used` as a percentage of the window."""
        return 100.0 * self.used / self.window if self.window else 0.0

    @property
    def turns_left(self) -> int | None:
        """An estimate of how many turns fit before the next trim, or with rolling off before the refusal.

        The next turn counts as long as its draft if that exceeds the pace. None if there is no pace.
        """
        if not self.pace:
            return None
        left = self.until_trim - max(self.pace, self.draft)
        turns = 1 + left // self.pace if left >= 0 else 0
        return turns if self.most_turns is None else min(turns, self.most_turns)

    def after(self, before: PromptReport) -> PromptReport:
        """Return the report with `turns_left` capped at that of `before`, unless something was freed since.

        The pace is a mean, and a streaming reply is estimated: both may decrease while the window fills.
        """
        known = (self.model, self.rolling, self.window) == (before.model, before.rolling, before.window)
        left_out = (Fate.OMITTED, Fate.SUMMARIZED, Fate.EXCLUDED, Fate.MASKED, Fate.SHORTENED)
        is_freed = (
            len(self.rows) < len(before.rows)
            or self.count(*left_out) > before.count(*left_out)
            or self.trim_at > before.trim_at + self.window // _OTHER_SETTINGS
        )
        if is_freed or not known or before.turns_left is None:
            return self
        is_above = self.turns_left is not None and self.turns_left > before.turns_left
        return replace(self, most_turns=before.turns_left) if is_above else self

    def with_draft(self, tokens: int) -> PromptReport:
        """Return the report with a draft of `tokens` in the prompt box."""
        return replace(self._with_wider_band(tokens - self.draft), draft=tokens)

    def grown(self, tokens: int) -> PromptReport:
        """Return the report after the current turn has grown by about `tokens`."""
        if not tokens:
            return self
        until_trim = self.until_trim - tokens
        current = self.current + tokens
        return replace(self._with_wider_band(tokens), current=current, until_trim=until_trim, exact=False)

    def _with_wider_band(self, tokens: int) -> PromptReport:
        """Return the report with its band adjusted to `tokens` more estimated tokens."""
        more = math.ceil(abs(tokens) * self.spread) * (1 if tokens > 0 else -1)
        return replace(self, below=max(0, self.below + more), above=max(0, self.above + more))

    def without_stand_ins(self) -> PromptReport:
        """Return the report without placeholders for a request or results still to come."""
        if not self.stand_ins:
            return self
        current, until_trim = self.current - self.stand_ins, self.until_trim + self.stand_ins
        return replace(self, current=current, until_trim=until_trim, stand_ins=0)

    def count(self, *fates: Fate) -> int:
        """Count the messages with one of `fates`."""
        return sum(self.fates.get(fate, 0) for fate in fates)

    def totals(self) -> dict[str, Json]:
        """Return the report without its rows, ready for JSON."""
        return {
            "model": self.model,
            "rolling": self.rolling,
            "token_count": self.token_count,
            "bound": self.bound,
            **({"unproven": self.unproven} if self.unproven else {}),
            "max_input_tokens": self.window,
            "within_budget": self.within_budget,
            "confirmed": self.exact,
            "band": round(self.band, 4),
            "below": self.below,
            "above": self.above,
            "categories": {
                "system": self.system,
                "tools": self.tools,
                "summary": self.summary,
                "history": self.history,
                "current": self.current,
                "reserve": self.reserve,
                "margin": self.margin,
            },
            "history_budget": self.history_budget,
            "trim_at": self.trim_at,
            "floor": self.floor,
            "fates": {fate.value: self.count(fate) for fate in Fate},
        }
