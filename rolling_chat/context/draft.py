"""A prompt in the making: what stays, what was decided, what it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rolling_chat.context.budget import Budget
from rolling_chat.context.pieces import SUMMARISED, Decisions, Piece
from rolling_chat.context.pins import Held
from rolling_chat.context.summary import Summary
from rolling_chat.messages import JsonObject, Message


@dataclass(frozen=True, slots=True)
class Draft:
    """Everything that a report tells of.

    `history` and `current` are what is sent after the system message, in order; `unfit` are places of
    messages that no prompt can carry; `before` are the decisions that the plan came with; `held` is what
    the person pinned and excluded, `summary` the one in force.
    """

    given: Sequence[Message | JsonObject]
    system: Message | None
    history: Sequence[Piece]
    current: Sequence[Piece]
    decisions: Decisions
    before: Decisions
    unfit: Sequence[int]
    held: Held
    summary: Summary | None

    @property
    def pieces(self) -> list[Piece]:
        """What is sent after the system message."""
        return [*self.history, *self.current]

    @property
    def pinned(self) -> int:
        """The bound of what is in the history because it was pinned, in tokens."""
        return sum(piece.bound for piece in self.history if piece.index in self.held.kept)

    @property
    def summarised(self) -> int:
        """How many messages the summary stands for; none where nothing is left of its text."""
        is_said = self.summary is not None and bool(self.summary.text)
        return self.decisions.omitted.of(SUMMARISED) if is_said else 0

    def parts(self, budget: Budget) -> Mapping[str, int]:
        """The parts of the prompt by the names that people know, as bounds in tokens."""
        users = sum(piece.bound for piece in self.current if piece.message.role == "user")
        return {
            "system prompt": budget.system,
            "tools": budget.tools,
            "history": sum(piece.bound for piece in self.history) - self.pinned,
            "pinned messages": self.pinned,
            "current message": users,
            "tool work of this turn": sum(piece.bound for piece in self.current) - users,
            "reserve for the answer": budget.reserve,
        }
