"""A summary proposed to the user, and the line for one that a model's answer was not used for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rolling_chat.context import PromptReport
from rolling_chat.context.summary_left_out import LeftOutLine
from rolling_chat.sessions.records import StoredSummary


@dataclass(frozen=True, slots=True)
class Proposal:
    """A summary that the user may accept or reject.

    `before` and `after` are reports of the next request without and with it. `refused` is why a model's
    answer was not used and the summary was extracted by rule. `left_out` are lines of the messages that it
    covers but does not mention, the most needed first.
    """

    summary: StoredSummary
    expected: int
    before: PromptReport
    after: PromptReport
    refused: str = ""
    left_out: Sequence[LeftOutLine] = ()


def refused_line(reason: str) -> str:
    """Return the line that explains why a model's summary was not accepted."""
    return f"The model's summary was not used ({reason}); it was extracted by rule"
