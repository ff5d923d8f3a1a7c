"""Learn from the token counts that a provider reports for the planned prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from rolling_chat.agent.request.builder import PlannedRequest
from rolling_chat.agent.request.counting import new_sizes
from rolling_chat.agent.request.plan_state import PlanState
from rolling_chat.context import ContextPlan, confirm_count
from rolling_chat.context.measured_sizes import MeasuredSizes, characters_of
from rolling_chat.messages import Message, Usage
from rolling_chat.providers import wire
from rolling_chat.sessions.records import Learned

_MAX_ESTIMATED = 0.05  # share of a prompt that may be estimated when the provider has counted it


class CountFeedback:
    """Applies a provider's token counts to the plan, the calibration and the session's counts."""

    def __init__(self, state: PlanState) -> None:
        self._state = state

    def confirm(self, plan: ContextPlan, reported: int, *, is_counted: bool = False) -> bool:
        """Apply the provider's count of the prompt of `plan`; return whether it is plausible.

        A count of 0 means that the provider gave none. With `is_counted` the provider has only counted this
        very prompt and not answered it. Call `remember_sizes` afterwards.
        """
        state = self._state
        confirmed, group = confirm_count(plan, reported, is_certain=is_counted, memo=state.counts.memo)
        if confirmed is plan:
            return False
        if confirmed.sent is not None:  # doubtful: believed once the next count agrees
            state.plan = confirmed
            return False
        sent = plan.sent.items if plan.sent is not None else ()
        found = new_sizes(sent, plan.measured.of(state.setup.model), confirmed.measured)
        state.new_sizes = {**state.new_sizes, **found}
        state.plan, state.is_counted = confirmed, is_counted
        state.setup.measure(group, is_counted=is_counted)
        return True

    def learn_refusal(self, planned: PlannedRequest, counted: int, branch: Sequence[Message]) -> bool:
        """Learn from a refusal for length, which named `counted` tokens, or 0 if it named none.

        Return whether it contradicts what the provider had counted beforehand. If so, all of its counts are
        discarded, for later processes too.
        """
        state, plan = self._state, self._state.plan
        is_contradicted = self._has_counted(planned) and not 0 < counted <= planned.report.bound
        if is_contradicted and plan is not None:
            model, state.new_sizes, state.is_counted = state.setup.model, {}, False
            state.setup.distrust_counts()
            state.counts.forget(branch, model)
            plan = replace(plan, measured=MeasuredSizes(model), confirmed=None, index=None)
            state.use_plan(confirm_count(plan, counted, is_certain=True, memo=state.counts.memo).plan)
        else:
            self._confirm_current(counted)
        self.remember_sizes(branch)
        return is_contradicted

    def learn_answer(self, usage: Usage, reply: Message, branch: Sequence[Message]) -> None:
        """Learn from an answered request, whose reply is in `branch`; discard a learned limit below it."""
        state, reported = self._state, usage.input_tokens
        state.is_counted = False
        is_plausible = self._confirm_current(0 if usage.is_sum else reported)
        if is_plausible:  # otherwise the reply's size in the same usage is not trusted either
            self.remember_sizes(branch)
            self._measure_reply(usage, reply, branch)
        else:
            state.setup.note_try()
        # a sum of several requests does not show how long one of them may be
        if 0 < state.setup.learned.limit < reported and (is_plausible or state.plan is None):
            state.setup.learn(Learned())

    def remember_sizes(self, branch: Sequence[Message]) -> None:
        """Add the newly measured sizes of the messages in `branch` to the session's counts, to be stored."""
        state, plan = self._state, self._state.plan
        sizes, state.new_sizes = state.new_sizes, {}
        if not sizes or plan is None or plan.index is None:
            return
        end = min(len(branch), plan.index.seen - 1)  # the branch does not contain the system message
        state.counts.measure(branch, sizes, state.setup.model, plan.confirmed, end)

    def _confirm_current(self, reported: int) -> bool:
        """Apply the provider's count of the prompt that was planned last; return whether it is plausible."""
        plan = self._state.plan
        return plan is not None and self.confirm(plan, reported)

    def _has_counted(self, planned: PlannedRequest) -> bool:
        """Return whether the provider has counted nearly all of a prompt, other than by answering one."""
        items = planned.plan.sent.items if planned.plan.sent else ()
        estimated = sum(item.tokens for item in items if not item.measured)
        return self._state.is_counted and estimated <= _MAX_ESTIMATED * planned.report.token_count

    def _measure_reply(self, usage: Usage, reply: Message, branch: Sequence[Message]) -> None:
        """Use the reported size of a reply until the count of a prompt includes it."""
        state = self._state
        setup, later = state.setup, takewhile(lambda one: one is not reply, reversed(branch))
        (seen,) = wire.for_model([reply], setup.model, pictures=setup.takes_pictures)
        size = state.counts.measure_reply(reply, usage, seen, setup.model, setup.measurements.calibration)
        if size is None or state.plan is None:
            return
        key = (len(branch) - len(list(later)), characters_of(seen))
        measured = state.plan.measured.of(setup.model).add_replies({key: size})
        state.use_plan(replace(state.plan, measured=measured))
