"""Plan the requests of one session, and record those that are sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rolling_chat.agent.request.builder import (
    MAX_ANSWER,
    PlannedRequest,
    RequestBuilder,
    RequestParts,
    ToolChoice,
    does_not_fit,
)
from rolling_chat.agent.request.cache_misses import CacheMiss
from rolling_chat.agent.request.count_feedback import CountFeedback
from rolling_chat.agent.request.counting import SessionCounts
from rolling_chat.agent.request.forecast import Forecast
from rolling_chat.agent.request.inputs import RequestInputs
from rolling_chat.agent.request.model_limits import effort_within
from rolling_chat.agent.request.pipeline import Pipeline
from rolling_chat.agent.request.plan_state import PlanState
from rolling_chat.agent.request.prompt_cache import PromptCache
from rolling_chat.agent.request.setup import RequestSetup
from rolling_chat.agent.runtime import Runtime
from rolling_chat.context import ContextConfig, ContextOverflowError, ContextPlan, FinalPrompt
from rolling_chat.messages import Message, Usage
from rolling_chat.providers import wire

_MAX_QUICK = 500  # changed messages; planning with so many takes some 10 ms
_WIRE_ATTEMPTS = 3  # plans to try when the wire form turns out longer than planned


class Planner:
    """Plans the requests of one session.

    `plan_state` has the current plan, which `take` replaces with that of the request being sent. `pipeline`
    makes prompts, `forecast` previews them, and `feedback` learns from the counts that the provider reports.
    """

    def __init__(
        self,
        runtime: Runtime,
        setup: RequestSetup,
        session_id: str,
        counts: SessionCounts,
    ) -> None:
        self._runtime = runtime
        self.setup = setup
        self.counts = counts
        self.plan_state = PlanState(runtime, setup, session_id, counts)
        self.pipeline = Pipeline(self.plan_state)
        self.forecast = Forecast(runtime, self.plan_state, self.pipeline)
        self.feedback = CountFeedback(self.plan_state)
        self.builder = RequestBuilder(runtime, session_id, counts.memo)
        self.cache = PromptCache(runtime, setup, session_id)

    def plan(
        self, branch: Sequence[Message], *, tool_choice: ToolChoice = "auto", input_limit: int = 0
    ) -> PlannedRequest:
        """Plan the next request, counted on its wire form. Raises ContextOverflowError.

        The session's plan does not change until `take`. `input_limit` above 0 limits the upper bound of this
        one request, in tokens.
        """
        config, plan = replace(self.setup.config, input_limit=input_limit), self.plan_state.plan
        for _ in range(_WIRE_ATTEMPTS):
            planned = self._attempt(branch, config, plan, tool_choice)
            if planned.report.within_budget:
                return planned
            # Leave room for what the wire form adds, and plan again.
            room = min(planned.room, input_limit) if input_limit else planned.room
            config, plan = replace(config, input_limit=max(room - planned.wire_tokens, 1)), planned.plan
        raise does_not_fit(planned.report, config)

    def plan_question(
        self, branch: Sequence[Message], question: str, tool_choice: ToolChoice
    ) -> PlannedRequest | None:
        """Plan a request for a summary: the chat's next prompt, followed by `question`.

        Return None if it would not fit. The session's plan does not change.
        """
        config, asked = self.setup.config, [*branch, Message("user", question)]
        inputs, pipeline = self.setup.inputs(config), self.pipeline
        plan = pipeline.usable_plan(self.plan_state.plan, config)
        try:
            final = pipeline.run(inputs, asked, plan, summary=pipeline.newest_summary(config))
        except ContextOverflowError:
            return None
        planned = self._build(final, inputs, branch, tool_choice, question)
        return planned if planned.report.within_budget else None

    def plan_untrimmed(
        self, branch: Sequence[Message], tool_choice: ToolChoice, wanted: Callable[[FinalPrompt], bool]
    ) -> PlannedRequest | None:
        """Plan the next request with the current plan's decisions only, so that it need not fit.

        Return None unless `wanted` accepts its prompt.
        """
        config = self.setup.config
        inputs, plan = self.setup.inputs(config), self.pipeline.usable_plan(self.plan_state.plan, config)
        final = self.pipeline.run_untrimmed(inputs, branch, plan)
        return self._build(final, inputs, branch, tool_choice) if wanted(final) else None

    def take(self, planned: PlannedRequest) -> None:
        """Make the plan of a request that is being sent the current one."""
        state = self.plan_state
        state.plan = planned.plan
        # after a trim, or with another wire form, the next request is no longer the one in the last report
        if planned.report.trimmed or planned.wire_tokens != state.wire_tokens:
            state.mark_changed()
        state.wire_tokens = planned.wire_tokens
        state.previous_length = len(planned.request.messages)

    def is_quick(self, branch: Sequence[Message]) -> bool:
        """Return whether few messages have changed since the last plan, so that planning is quick."""
        plan = self.plan_state.plan
        seen = plan.seen_under(self.setup.config, self.setup.model) if plan is not None else 0
        return abs(len(branch) + 1 - seen) <= _MAX_QUICK

    def notice_idleness(self) -> None:
        """Mark the plan as uncached once the provider has dropped its cache of the session."""
        self.cache.read()
        if self.plan_state.plan is not None and self.cache.is_cold:
            self.plan_state.plan = self.plan_state.plan.cold()

    def record(self, planned: PlannedRequest) -> str:
        """Log the request in the store before it is sent; return the record's id."""
        return self._runtime.store.log_request(planned.record, planned.inputs, keep_plan=True)

    def finish(
        self, record_id: str, planned: PlannedRequest, usage: Usage, seconds: float, error: str
    ) -> CacheMiss | None:
        """Complete a request's record; return why the provider's cache did not serve it, if so."""
        miss = None if error else self.cache.judge(planned, usage, planned.record.created_at)
        self._runtime.store.finish_request(
            record_id, usage=usage, seconds=seconds, error=error,
            miss=(miss.cause.value, miss.tokens) if miss is not None else ("", 0),
        )  # fmt: skip
        return miss

    def _attempt(
        self,
        branch: Sequence[Message],
        config: ContextConfig,
        plan: ContextPlan | None,
        tool_choice: ToolChoice,
    ) -> PlannedRequest:
        """Plan once; the wire form of the request may turn out too long."""
        inputs, pipeline = self.setup.inputs(config), self.pipeline
        plan = pipeline.usable_plan(plan, config)
        final = pipeline.run(inputs, branch, plan, summary=pipeline.newest_summary(config))
        if final.report.reduced_reserve:
            margin = config.safety_margin if final.report.margin else 0.0
            smaller = replace(
                config, reserved_output_tokens=final.report.reduced_reserve, safety_margin=margin
            )
            inputs = replace(inputs, config=smaller)
        return self._build(final, inputs, branch, tool_choice)

    def _build(
        self,
        final: FinalPrompt,
        inputs: RequestInputs,
        branch: Sequence[Message],
        tool_choice: ToolChoice,
        question: str = "",
    ) -> PlannedRequest:
        setup = self.setup
        planned = self.builder.build(
            RequestParts(
                final, inputs, setup.model, setup.address, setup.window,
                head=branch[-1].id if branch else "",
                tool_choice=tool_choice, effort=setup.effort,
                previous_length=self.plan_state.previous_length, question=question, is_warm=bool(question),
                purpose="summary" if question else "answer",
            )
        )  # fmt: skip
        max_tokens = self._max_tokens(planned.answer_room)
        effort = effort_within(setup.effort, max_tokens)
        return replace(planned, request=replace(planned.request, max_tokens=max_tokens, effort=effort))

    def _max_tokens(self, room: int) -> int | None:
        """Return the `max_tokens` to send: None unless the provider needs it or the user set it.

        It is at most `room`, which excludes the safety margin in case the prompt's upper bound is too low.
        """
        model = self.setup.model
        is_set = self._runtime.settings.for_model(model).max_output_tokens
        if not is_set and not wire.requires_max_tokens(model):
            return None
        return max(min(room, MAX_ANSWER), 1)
