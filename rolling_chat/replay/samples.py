"""What the picture needs of a request: little, for a file may hold a hundred thousand of them."""

from __future__ import annotations

from dataclasses import dataclass

from rolling_chat.replay.run import Replayed

CATEGORIES = ("system", "tools", "summary", "history", "current")
"""The parts of a prompt, from the bottom of the picture up; each a field of the report."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One request's tokens by category, in the order of CATEGORIES."""

    conversation: str
    tokens: tuple[int, ...]
    trimmed: bool
    refused: bool
    window: int
    room: int

    @classmethod
    def of(cls, replayed: Replayed) -> Sample:
        """Take the figures of one request."""
        report = replayed.report
        return cls(
            conversation=replayed.conversation,
            tokens=tuple(getattr(report, category) for category in CATEGORIES),
            trimmed=report.trimmed and not replayed.overflow,
            refused=bool(replayed.overflow),
            window=report.window,
            room=max(0, report.room),
        )

    @property
    def total(self) -> int:
        """The prompt's tokens."""
        return sum(self.tokens)
