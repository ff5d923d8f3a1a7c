"""A prompt in the making: what stays, what was decided, what it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rolling_chat.context.budget import Budget
from rolling_chat.context.pins import PinEffects
from rolling_chat.context.prompt_items import SUMMARIZED, Decisions, PromptItem
from rolling_chat.context.summary import Summary
from rolling_chat.messages import JsonObject, Message


@dataclass(frozen=True, slots=True)
class AssembledPrompt:
    """Everything that a report tells of.

    `history` and `current` are what is sent after the system message, in order; `unfit` are the indexes
    of messages that no prompt can carry; `before` are the decisions that the plan came with; `pin_effects`
    is what the user pinned and excluded, `summary` the active one.
    """

    given: Sequence[Message | JsonObject]
    system: Message | None
    history: Sequence[PromptItem]
    current: Sequence[PromptItem]
    decisions: Decisions
    before: Decisions
    unfit: Sequence[int]
    pin_effects: PinEffects
    summary: Summary | None

    @property
    def items(self) -> list[PromptItem]:
        """What is sent after the system message."""
        return [*self.history, *self.current]

    @property
    def pinned(self) -> int:
        """The bound of what is in the history because it was pinned, in tokens."""
        return sum(item.bound for item in self.history if item.index in self.pin_effects.pinned)

    @property
    def summarized(self) -> int:
        """How many messages the summary stands for; none where nothing is left of its text."""
        is_said = self.summary is not None and bool(self.summary.text)
        return self.decisions.omitted.of(SUMMARIZED) if is_said else 0

    def parts(self, budget: Budget) -> Mapping[str, int]:
        """The parts of the prompt by the names that people know, as bounds in tokens."""
        users = sum(item.bound for item in self.current if item.message.role == "user")
        return {
            "system prompt": budget.system,
            "tools": budget.tools,
            "history": sum(item.bound for item in self.history) - self.pinned,
            "pinned messages": self.pinned,
            "current message": users,
            "tool work of this turn": sum(item.bound for item in self.current) - users,
            "reserve for the answer": budget.reserve,
        }
