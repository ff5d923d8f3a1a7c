"""A request that was planned, a look at the next one, and what both are measured by."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rolling_chat.context import ContextConfig, ContextOverflowError, ContextPlan, PromptReport, Summary
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
class Look:
    """A report of the next request, the plan that it was made `since`, and what was seen for it."""

    report: PromptReport
    since: ContextPlan | None
    index: PlanIndex | None


def as_summary(stored: StoredSummary | None) -> Summary | None:
    """A stored summary as the pipeline knows it; None for one that only takes back."""
    if stored is None or not stored.text:
        return None
    return Summary(stored.text, stored.place, stored.generation)


def room_of(config: ContextConfig) -> int:
    """W - R - M, as the pipeline divides the window."""
    window = config.max_context_tokens
    return window - reserve_of(config) - int(window * config.safety_margin)


def reserve_of(config: ContextConfig) -> int:
    """R, without what an input limit adds to it."""
    window = config.max_context_tokens
    return min(config.reserved_output_tokens, window // 3, config.max_output_tokens or window)


def does_not_fit(report: PromptReport) -> ContextOverflowError:
    """What is raised where even the least of a prompt is too long."""
    room = report.window - report.reserve - report.margin
    share = 1 - (report.reserve + report.margin) / report.window
    return ContextOverflowError(
        current=report.bound,
        maximum=room,
        largest=[("history", report.history), ("current turn", report.current), ("system", report.system)],
        smallest_window=math.ceil(report.bound / share) if share > 0 else report.bound,
        report=report,
    )
