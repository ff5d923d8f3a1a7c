"""Report what the next request would be, as it is or with other settings, pins or another summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rolling_chat.agent.memory.pin_scope import PinnedIds
from rolling_chat.agent.request.pipeline import Pipeline
from rolling_chat.agent.request.plan_state import PlanState
from rolling_chat.agent.runtime import Runtime
from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    PromptReport,
    Summary,
)
from rolling_chat.context.measured_sizes import NOTHING_MEASURED, Confirmed, MeasuredSizes
from rolling_chat.context.plan import PlanIndex
from rolling_chat.messages import Message
from rolling_chat.settings.schema import ContextSettings


@dataclass(frozen=True, slots=True)
class Preview:
    """A report of the next request, and the index and sizes that were computed for it.

    `since` is the plan that it was made from. The index is None if the request would change that plan's
    decisions.
    """

    report: PromptReport
    since: ContextPlan | None
    index: PlanIndex | None = None
    measured: MeasuredSizes = NOTHING_MEASURED
    confirmed: Confirmed | None = None


class Forecast:
    """Reports the next request of a session, even one that does not fit, without planning it."""

    def __init__(self, runtime: Runtime, state: PlanState, pipeline: Pipeline) -> None:
        self._runtime = runtime
        self._state = state
        self._pipeline = pipeline

    def report(
        self,
        branch: Sequence[Message],
        *,
        context: ContextSettings | None = None,
        rolling: bool | None = None,
        pins: PinnedIds | None = None,
    ) -> PromptReport:
        """Report the next request, optionally under other settings or with other pins."""
        setup, context = self._state.setup, context or self._runtime.settings.context
        config = setup.config_under(context, rolling=setup.rolling if rolling is None else rolling)
        return self._forecast(config, branch, self.plan_under(context, branch), pins)[0]

    def preview(self, branch: Sequence[Message]) -> Preview:
        """Report the next request; `keep` reuses what was computed for it."""
        state, since = self._state, self._state.plan
        report, plan = self._forecast(state.setup.config, branch, since)
        if plan is None or (state.setup.rolling and not _has_same_decisions(plan, since)):
            return Preview(report, since)
        return Preview(report, since, plan.index, plan.measured, plan.confirmed)

    def keep(self, preview: Preview) -> None:
        """Keep the index and sizes of a preview, so that the next one only has to examine new messages.

        Ignored if the preview would have changed the plan's decisions, which only a request may, if the plan
        has changed since, or if the provider has yet to count its prompt.
        """
        state, since = self._state, preview.since
        if preview.index is None or state.plan is not since or (since and since.sent):
            return
        state.plan = replace(
            since or ContextPlan(),
            index=preview.index,
            measured=preview.measured,
            confirmed=preview.confirmed,
        )

    def with_summary(
        self, branch: Sequence[Message], summary: Summary | None, *, anew: bool = False
    ) -> tuple[ContextPlan | None, PromptReport]:
        """Return the plan and the report of the next request if it used `summary`.

        With `anew` the plan restores whatever there is room for. It is None if the request would not fit.
        """
        setup, plan = self._state.setup, self._state.plan
        if anew:
            plan = replace(plan, seen=0) if plan is not None else None
        inputs = setup.inputs(setup.config)
        try:
            final = self._pipeline.run(inputs, branch, plan, summary=summary, take_summary=True)
        except ContextOverflowError as error:
            return None, error.report
        return final.plan, final.report

    def plan_under(self, context: ContextSettings, branch: Sequence[Message]) -> ContextPlan | None:
        """Return the plan to continue from under the settings `context`; None to plan from scratch.

        The current plan is kept, so that the prefix of the prompt does not change, unless planning from
        scratch would keep more of the branch.
        """
        current = self._state.plan
        if current is None or context == self._runtime.settings.context:
            return current
        config = self._state.setup.config_under(context, rolling=True)
        kept, fresh = (self._forecast(config, branch, plan)[0] for plan in (current, None))
        is_fresh_better = not kept.within_budget or fresh.token_count > kept.token_count
        return current.afresh() if is_fresh_better else current

    def _forecast(
        self,
        config: ContextConfig,
        branch: Sequence[Message],
        plan: ContextPlan | None,
        pins: PinnedIds | None = None,
    ) -> tuple[PromptReport, ContextPlan | None]:
        """Return the report of the next request, and the plan that it would have.

        Its wire form is assumed to add as many tokens as that of the last request did.
        """
        report, made = self._forecast_plain(config, branch, plan, pins)
        added = self._state.wire_tokens
        if not added:
            return report, made
        if report.within_budget and report.tested + added > report.room:
            config = replace(config, input_limit=max(report.room - added, 1))
            report, made = self._forecast_plain(config, branch, plan, pins)
        unproven = report.unproven and report.unproven + added
        grown = replace(report, bound=report.bound + added, unproven=unproven)
        return replace(grown, within_budget=report.within_budget and grown.tested <= grown.room), made

    def _forecast_plain(
        self,
        config: ContextConfig,
        branch: Sequence[Message],
        plan: ContextPlan | None,
        pins: PinnedIds | None,
    ) -> tuple[PromptReport, ContextPlan | None]:
        """Return the report and the plan of the next request, without what its wire form adds."""
        pipeline, inputs = self._pipeline, self._state.setup.inputs(config)
        plan = pipeline.usable_plan(plan, config)
        try:
            final = pipeline.run(inputs, branch, plan, pins=pins, summary=pipeline.newest_summary(config))
        except ContextOverflowError as error:
            return error.report, error.plan
        return final.report, final.plan


def _has_same_decisions(plan: ContextPlan, before: ContextPlan | None) -> bool:
    """Return whether `plan` has the same decisions and summary as the plan that it was made from."""
    return before is not None and (plan.decisions, plan.summary) == (before.decisions, before.summary)
