"""A request that was planned, a look at the next one, and what both are measured by."""

from __future__ import annotations

from dataclasses import dataclass

from rolling_chat.context import ContextConfig, ContextOverflowError, ContextPlan, PromptReport, Summary
from rolling_chat.context.budget import reserve_and_margin, room_for_prompt, smallest_window
from rolling_chat.context.pieces import NOTHING_MEASURED, MeasuredSizes
from rolling_chat.context.plan import PlanIndex
from rolling_chat.messages import JsonObject, MadeBy
from rolling_chat.providers.protocol import Request
from rolling_chat.sessions.records import RequestRecord, StoredSummary


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """A request that fits, its report, and the record of it that goes to the store.

    `basis` is what it was made from; `room` what its upper bound might be at most, in tokens; `plan` the
    decisions that it was made by.
    """

    request: Request
    report: PromptReport
    made_by: MadeBy
    record: RequestRecord
    basis: JsonObject
    room: int
    plan: ContextPlan


@dataclass(frozen=True, slots=True)
class Preview:
    """A report of the next request, the plan that it was made `since`, and what was seen for it: the index,
    and what the model counted of the messages."""

    report: PromptReport
    since: ContextPlan | None
    index: PlanIndex | None
    measured: MeasuredSizes = NOTHING_MEASURED


def as_summary(stored: StoredSummary | None) -> Summary | None:
    """A stored summary as the pipeline knows it; None for one that only takes back."""
    if stored is None or not stored.text:
        return None
    return Summary(stored.text, stored.place, stored.generation)


def room_of(config: ContextConfig) -> int:
    """W - R - M, as the pipeline divides the window."""
    return room_for_prompt(config, config.max_context_tokens)


def reserve_of(config: ContextConfig) -> int:
    """R, without what an input limit adds to it."""
    return reserve_and_margin(config, config.max_context_tokens)[0]


def does_not_fit(report: PromptReport, config: ContextConfig) -> ContextOverflowError:
    """What is raised where even the least of a prompt is too long."""
    return ContextOverflowError(
        current=report.bound,
        maximum=report.window - report.reserve - report.margin,
        largest=[("history", report.history), ("current turn", report.current), ("system", report.system)],
        smallest_window=smallest_window(config, report.bound),
        report=report,
    )
