"""The prompt report: what became of every message of one prompt, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from rolling_chat.context.budget import Budget
from rolling_chat.lazily import Lazily
from rolling_chat.messages import Json, Role


class Fate(StrEnum):
    """Name what became of a message; every message of a branch has exactly one fate."""

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
        """The word for it on the screen; the value is JSON's, which keeps its spelling."""
        return "summarized" if self is Fate.SUMMARIZED else self.value


@dataclass(frozen=True, slots=True)
class Row:
    """Report one message: its fate, the layer that decided it, its tokens before and after.

    `index` is its position in the messages given; `layer` is "1", "2", "3a", "3b", "3c", "arguments",
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
"""The rows of a report, each drawn when it is first asked for: a long session has many."""


@dataclass(frozen=True, slots=True)
class PromptReport:
    """Report how one request divides the context window, and what became of every message.

    The categories add up to `token_count` + `draft` + `reserve` + `margin`. `bound` is the upper
    bound that the hard rule tests: `bound + reserve + margin <= window`. `trim_at` is the size of
    the prompt (best estimate) at which the next trim, or with rolling off the refusal, comes;
    `until_trim` is how much the conversation may grow before that, the turn that runs taken for history,
    and `pace` how much a turn makes it grow: the mean of the newest turns that are whole, as they came
    in, 0 where none is.
    `fates` counts messages by what became of them; `trimmed` says that this prompt took decisions
    that the one before had not.
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
    exact: bool = False  # the model has counted this conversation; only what is new is estimated
    band: float = 0.0  # how far above token_count the bound lies, as a share of it
    turns: int = 0
    until_trim: int = 0
    pace: int = 0
    stand_ins: int = 0  # tokens at its end, in `current`, for a request or results that are still to come
    reduced_reserve: int = 0  # tokens: what the reserve gave way to where nothing else would fit
    inserted: int = 0  # tokens of messages that no row is for: what a provider needs between two others

    @property
    def token_count(self) -> int:
        """Return the best estimate of the prompt: messages and tools, without the draft."""
        return self.system + self.tools + self.summary + self.history + self.current

    @property
    def room(self) -> int:
        """The room for the whole prompt, in tokens: W - R - M."""
        return Budget(self.window, self.reserve, self.margin).room

    @property
    def used(self) -> int:
        """Return the size that the gauge shows: the prompt and the draft."""
        return self.token_count + self.draft

    @property
    def percent(self) -> float:
        """Return `used` as a share of the window, in percent."""
        return 100.0 * self.used / self.window if self.window else 0.0

    @property
    def turns_left(self) -> int | None:
        """Estimate how many turns fit before the next trim, or with rolling off before the refusal.

        The next one is as long as its draft, where that is more than the pace; None while there is no
        pace to go by.
        """
        if not self.pace:
            return None
        left = self.until_trim - max(self.pace, self.draft)
        return 1 + left // self.pace if left >= 0 else 0

    def with_draft(self, tokens: int) -> PromptReport:
        """Return the report with a draft of `tokens` in the prompt box."""
        return replace(self, draft=tokens)

    def grown(self, tokens: int) -> PromptReport:
        """Return the report after about `tokens` more of the current turn."""
        if not tokens:
            return self
        until_trim = self.until_trim - tokens
        return replace(self, current=self.current + tokens, until_trim=until_trim, exact=False)

    def without_stand_ins(self) -> PromptReport:
        """Return the report without stand-ins for a request or results still to come."""
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
            "max_input_tokens": self.window,
            "within_budget": self.within_budget,
            "confirmed": self.exact,
            "band": round(self.band, 4),
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
