"""A prompt in the making: what is measured, what stays, what was decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rolling_chat.context.budget import Budget, divide_window
from rolling_chat.context.config import ContextConfig
from rolling_chat.context.ladder import Decisions, Measured
from rolling_chat.context.tokens import (
    PRIMING_TOKENS,
    FamilyEstimator,
    TokenEstimator,
    bounding_estimator,
    estimator_for,
)
from rolling_chat.context.turns import Entry
from rolling_chat.messages import JsonObject, Message


@dataclass(frozen=True, slots=True)
class Sizes:
    """Estimates for the gauge and bounds for the hard rule, for one model and its tools."""

    config: ContextConfig
    model: str | None
    tools: Sequence[JsonObject] | None
    estimate: TokenEstimator
    bound: FamilyEstimator

    @classmethod
    def of(cls, config: ContextConfig, model: str | None, tools: Sequence[JsonObject] | None) -> Sizes:
        """The sizes that `config` asks for. Raises ValueError for an unknown estimator."""
        return cls(
            config, model, tools, estimator_for(model, config.token_estimator), bounding_estimator(model)
        )

    def measure(self, entry: Entry) -> Measured:
        """The entry with its estimate and its bound, in tokens."""
        message = entry.message
        return Measured(entry, self.estimate.count_message(message), self.bound.bound_message(message))

    def budget(self, system: Message | None) -> Budget:
        """The division of the window with this system message."""
        return divide_window(
            self.config,
            self.model,
            system=(self.bound.bound_message(system) if system else 0) + PRIMING_TOKENS,
            tools=self.bound.bound_tools(self.tools),
        )


@dataclass(frozen=True, slots=True)
class Draft:
    """Everything that a report tells of: `measured` is every message of the branch that could be sent,
    `history` and `current` are those that are; `unanswering` are places of results without a call."""

    sources: Sequence[Message]
    system: Message | None
    history: Sequence[Measured]
    current: Sequence[Measured]
    measured: Sequence[Measured]
    decisions: Decisions
    unanswering: Sequence[int]

    @property
    def kept(self) -> list[Measured]:
        """What is sent after the system message, in order."""
        return [*self.history, *self.current]

    def parts(self, budget: Budget) -> Mapping[str, int]:
        """The parts of the prompt by the names that people know, as bounds in tokens."""
        users = sum(item.bound for item in self.current if item.entry.message.role == "user")
        return {
            "system prompt": budget.system,
            "tools": budget.tools,
            "history": sum(item.bound for item in self.history),
            "current message": users,
            "tool work of this turn": sum(item.bound for item in self.current) - users,
            "reserve for the answer": budget.reserve,
        }
