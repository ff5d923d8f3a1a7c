"""Run the context pipeline on a session's branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rolling_chat.agent.memory.pin_scope import PinnedIds
from rolling_chat.agent.request.inputs import RequestInputs, SeenBranch
from rolling_chat.agent.request.plan_state import PlanState, as_summary
from rolling_chat.context import ContextConfig, ContextPlan, FinalPrompt, Summary, build_final_prompt
from rolling_chat.context.prompt import rebuild_final_prompt
from rolling_chat.messages import Message


class Pipeline:
    """Makes prompts of a session's branch, with its pins and counts. The session's plan does not change."""

    def __init__(self, state: PlanState) -> None:
        self._state = state
        self._seen_branch = SeenBranch()

    def messages(self, branch: Sequence[Message]) -> Sequence[Message]:
        """Return the messages to plan the next request from: the system prompt, then the branch."""
        setup = self._state.setup
        return setup.inputs(setup.config).prompt(branch, setup.model, self._seen_branch)

    def run(
        self,
        inputs: RequestInputs,
        branch: Sequence[Message],
        plan: ContextPlan | None,
        *,
        pins: PinnedIds | None = None,
        summary: Summary | None = None,
        take_summary: bool = False,
    ) -> FinalPrompt:
        """Plan the prompt for `branch`, continuing from `plan`. Raises ContextOverflowError.

        The pipeline decides when to begin using `summary`; with `take_summary` it does so at once.
        """
        state = self._state
        messages, plan = self._measured(inputs, branch, plan)
        return build_final_prompt(
            messages, inputs.config, tools=inputs.tools_as_sent, model=state.setup.model, plan=plan,
            pins=state.pins_on(branch) if pins is None else pins.on(branch),
            summary=summary, take_summary=take_summary, memo=state.counts.memo,
        )  # fmt: skip

    def run_untrimmed(
        self, inputs: RequestInputs, branch: Sequence[Message], plan: ContextPlan | None
    ) -> FinalPrompt:
        """Apply the decisions of `plan` to `branch` and make no others; the prompt need not fit."""
        state = self._state
        messages, plan = self._measured(inputs, branch, plan)
        final = rebuild_final_prompt(
            messages, inputs.config, tools=inputs.tools_as_sent, model=state.setup.model, plan=plan,
            pins=state.pins_on(branch), memo=state.counts.memo,
        )  # fmt: skip
        return final._replace(plan=replace(final.plan, is_cold=plan.is_cold))

    def newest_summary(self, config: ContextConfig) -> Summary | None:
        """Return the newest summary of the branch; None if there is none, or summaries are off."""
        return None if config.summarize == "off" else as_summary(self._state.summary)

    def usable_plan(self, plan: ContextPlan | None, config: ContextConfig) -> ContextPlan | None:
        """Return `plan`, without its summary if the user undid that or summaries are off."""
        if plan is None or plan.summary is None or not config.enabled:
            return plan
        newest = self._state.summary
        is_undone = newest is not None and not newest.text and newest.generation > plan.summary.generation
        return replace(plan, summary=None) if config.summarize == "off" or is_undone else plan

    def _measured(
        self, inputs: RequestInputs, branch: Sequence[Message], plan: ContextPlan | None
    ) -> tuple[Sequence[Message], ContextPlan]:
        """Return the messages to plan, and the plan with the sizes that the model has reported of them."""
        counts, model, plan = self._state.counts, self._state.setup.model, plan or ContextPlan()
        messages = inputs.prompt(branch, model, self._seen_branch)
        if plan.measured.model != model:
            measured = counts.measured_sizes(messages, branch, model)
            confirmed = counts.confirmed(branch, measured)
            plan = replace(plan, measured=measured, confirmed=confirmed or plan.confirmed)
        return messages, plan
