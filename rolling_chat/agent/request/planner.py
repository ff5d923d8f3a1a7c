"""The next request of a session: planned, previewed, and learned from when it was answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rolling_chat.agent.memory.pin_scope import PinnedIds, PinScope, pin_scope_of
from rolling_chat.agent.request.builder import (
    MAX_ANSWER,
    PlannedRequest,
    RequestBuilder,
    RequestParts,
    ToolChoice,
    does_not_fit,
)
from rolling_chat.agent.request.counting import SessionCounts, new_sizes
from rolling_chat.agent.request.inputs import RequestInputs
from rolling_chat.agent.request.setup import RequestSetup
from rolling_chat.agent.runtime import Runtime
from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    FinalPrompt,
    PromptReport,
    Summary,
    build_final_prompt,
    confirm_count,
)
from rolling_chat.context.plan import PlanIndex
from rolling_chat.context.prompt_items import NOTHING_MEASURED, MeasuredSizes
from rolling_chat.messages import Json, Message, Usage
from rolling_chat.providers import wire
from rolling_chat.sessions.records import Learned, StoredSummary
from rolling_chat.settings.schema import ContextSettings

_CACHE_SECONDS = 300.0
"""How long providers keep a prompt in their cache after it was last used."""

_FEW = 500  # messages; to look at so many takes some 10 ms
_WIRE_ATTEMPTS = 3  # plans that are tried when the wire form comes out longer than what was planned


@dataclass(frozen=True, slots=True)
class Preview:
    """A report of the next request, the plan it was made `since`, and the index and sizes found for it."""

    report: PromptReport
    since: ContextPlan | None
    index: PlanIndex | None
    measured: MeasuredSizes = NOTHING_MEASURED


def as_summary(stored: StoredSummary | None) -> Summary | None:
    """Return a stored summary as the pipeline's type; None for one that only records an undo."""
    if stored is None or not stored.text:
        return None
    return Summary(stored.text, stored.place, stored.generation)


class Planner:
    """Plans the requests of one session, keeping the plan and the last request's length between them.

    It remembers what has to stay the same between them: the plan, and the length of the request before.
    """

    def __init__(
        self,
        runtime: Runtime,
        setup: RequestSetup,
        session_id: str,
        counts: SessionCounts,
    ) -> None:
        self._runtime = runtime
        self._session_id = session_id
        self.counts = counts
        self.builder = RequestBuilder(runtime, session_id, counts.memo)
        self._plan: ContextPlan | None = None
        self._pins = PinnedIds()
        self._scope: tuple[str, PinScope] = ("", PinScope())  # of the branch with this head
        self._planned_at = 0.0
        self._previous_length = 0
        self._new_sizes: dict[int, int] = {}  # by index in the prompt; not yet among the counts
        self._revision = 0
        self.setup = setup
        self.summary: StoredSummary | None = None

    @property
    def revision(self) -> int:
        """A number that grows whenever the next request may have changed."""
        return self._revision + self.setup.revision

    def use_model(self, model: str, address: str | None) -> None:
        """Plan for another model from now on, whose provider has nothing cached."""
        self._new_sizes = {}
        self._previous_length = 0
        self.setup.use_model(model, address)

    def load_plan(self, plan: Json) -> None:
        """Replace the plan with the stored one of a branch that the session has moved to."""
        self._new_sizes = {}
        self.use_plan(ContextPlan.from_json(plan) if isinstance(plan, dict) else None)
        self._previous_length = 0
        self.read_summary()

    def read_summary(self) -> None:
        """Read the newest summary of the branch from the store."""
        self.summary = self._runtime.store.summary(self._session_id)
        self._revision += 1

    def planned(self, branch: Sequence[Message]) -> list[Message]:
        """Return the messages to plan the next request from: the system prompt, then the branch."""
        setup = self.setup
        return setup.inputs(setup.config).prompt(branch, setup.model)

    def plan_with(
        self, branch: Sequence[Message], summary: Summary | None, *, anew: bool = False
    ) -> tuple[ContextPlan | None, PromptReport]:
        """Return the plan and the report of the next request as if `summary` was active at once.

        With `anew` all that left comes back where there is room. The plan is None where the request
        would not fit.
        """
        plan = self._plan
        if anew:
            plan = replace(plan, seen=0) if plan is not None else None
        inputs = self.setup.inputs(self.setup.config)
        try:
            final = self._final(inputs, branch, plan, summary=summary, take_summary=True)
        except ContextOverflowError as error:
            return None, error.report
        return final.plan, final.report

    @property
    def decisions(self) -> ContextPlan | None:
        """The plan for the next request; it is kept but not used while rolling is off."""
        return self._plan

    def use_plan(self, plan: ContextPlan | None) -> None:
        """Replace the plan; the pipeline ignores one that does not match the branch."""
        self._plan = plan
        self._revision += 1

    @property
    def pins(self) -> PinnedIds:
        """The pinned and the excluded message ids of this session, on all branches."""
        return self._pins

    def use_pins(self, pins: PinnedIds) -> None:
        """Replace the pins from the next request on; keep those of the plan's decisions that they allow."""
        self._pins = pins
        self._scope = ("", PinScope())
        self._revision += 1

    def pin_scope(self, branch: Sequence[Message]) -> PinScope:
        """Return which messages of a branch the pins and exclusions affect."""
        head = branch[-1].id if branch else ""
        if self._scope[0] != head:
            self._scope = (head, pin_scope_of(branch, self._pins))
        return self._scope[1]

    def plan_under(self, context: ContextSettings, messages: Sequence[Message]) -> ContextPlan | None:
        """Return the plan to continue from with the settings `context`, None to plan from scratch.

        What left stays away, so that the prefix stands still, unless planning anew would keep more.
        """
        if self._plan is None or context == self._runtime.settings.context:
            return self._plan
        config = self.setup.config_under(context, rolling=True)
        kept, anew = (self._foresee(config, messages, plan)[0] for plan in (self._plan, None))
        return None if not kept.within_budget or anew.token_count > kept.token_count else self._plan

    def observe(self, reported: int) -> None:
        """Calibrate with the provider's token count of the prompt planned last; 0 means that it gave none."""
        if self._plan is None:
            return
        plan, group = confirm_count(self._plan, reported, memo=self.counts.memo)
        if plan is self._plan:
            return
        self._new_sizes |= new_sizes(self._plan.measured.of(self.setup.model), plan.measured)
        self._plan = plan
        self.setup.measure(group)

    def remember_sizes(self, branch: Sequence[Message]) -> None:
        """Add the sizes measured of `branch` since the last time to the session's counts, to be stored."""
        sizes, self._new_sizes = self._new_sizes, {}
        self.counts.measure(branch, sizes, self.setup.model)

    def succeed(self, reported: int) -> None:
        """Calibrate with the count of an answered request; discard a learned limit below it."""
        self.observe(reported)
        if 0 < self.setup.learned.limit < reported:
            self.setup.learn(Learned())

    def preview(
        self,
        messages: Sequence[Message],
        *,
        context: ContextSettings | None = None,
        rolling: bool | None = None,
        pins: PinnedIds | None = None,
    ) -> PromptReport:
        """Report the next request, even one that does not fit, without changing the plan.

        `context`, `rolling` and `pins` ask what it would be under others.
        """
        context = context or self._runtime.settings.context
        config = self.setup.config_under(context, rolling=self.setup.rolling if rolling is None else rolling)
        return self._foresee(config, messages, self.plan_under(context, messages), pins)[0]

    def look(self, messages: Sequence[Message]) -> Preview:
        """Report the next request, even one that does not fit, without changing the plan.

        What was seen for it is for `keep`, so that the next look is only at what is new.
        """
        since = self._plan
        report, plan = self._foresee(self.setup.config, messages, since)
        if plan is None or (self.setup.rolling and not _decides_as(plan, since)):
            return Preview(report, since, None)
        return Preview(report, since, plan.index, plan.measured)

    def keep(self, look: Preview) -> None:
        """Keep the index and sizes of a preview, unless the plan has changed since or waits for its count.

        What a request would decide is not decided by looking: what was seen beside it is not kept either.
        """
        if look.index is None or self._plan is not look.since or (look.since and look.since.sent):
            return
        self._plan = replace(look.since or ContextPlan(), index=look.index, measured=look.measured)

    def plan(
        self, branch: Sequence[Message], *, tool_choice: ToolChoice = "auto", most: int = 0
    ) -> PlannedRequest:
        """Plan the next request, counted on its wire form; `take` makes its plan the current one.

        Nothing is changed. `most` above 0 holds the upper bound of this one request to so many tokens.
        Raises ContextOverflowError.
        """
        config, plan = replace(self.setup.config, input_limit=most), self._plan
        for _ in range(_WIRE_ATTEMPTS):
            planned, added = self._attempt(branch, config, plan, tool_choice)
            if planned.report.within_budget:
                return planned
            # The wire copy adds a little of its own: leave that much room for it, and plan again.
            room = min(planned.room, most) if most else planned.room
            config, plan = replace(config, input_limit=max(room - added, 1)), planned.plan
        raise does_not_fit(planned.report, config)

    def take(self, planned: PlannedRequest) -> None:
        """Make the plan of a request that is being sent the current one."""
        self._plan = planned.plan
        self._revision += planned.report.trimmed  # what left stays away: the report of before is another
        self._previous_length = len(planned.request.messages)

    def is_quick(self, branch: Sequence[Message]) -> bool:
        """Return whether few messages have changed since the last plan, so that planning is quick."""
        seen = self._plan.seen_under(self.setup.config, self.setup.model) if self._plan is not None else 0
        return abs(len(branch) + 1 - seen) <= _FEW

    def notice_idleness(self) -> None:
        """Mark the plan as uncached after an idle time in which the provider has dropped its cache."""
        now = self._runtime.clock()
        if self._plan is not None and now - self._planned_at > _CACHE_SECONDS:
            self._plan = self._plan.cold()
        self._planned_at = now

    def record(self, planned: PlannedRequest) -> str:
        """Log the request in the store before it is sent; return the record's id."""
        self._runtime.store.update_session(self._session_id, plan=planned.record.plan)
        return self._runtime.store.log_request(planned.record, planned.inputs)

    def finish(self, record_id: str, usage: Usage, seconds: float, error: str) -> None:
        """Complete a request's record with usage, duration and error."""
        self._runtime.store.finish_request(record_id, usage=usage, seconds=seconds, error=error)

    def _attempt(
        self,
        branch: Sequence[Message],
        config: ContextConfig,
        plan: ContextPlan | None,
        tool_choice: ToolChoice,
    ) -> tuple[PlannedRequest, int]:
        """Plan once; return the request, and by how many tokens its wire form exceeds the plan."""
        setup, inputs = self.setup, self.setup.inputs(config)
        final = self._final(inputs, branch, self._active(plan, config), summary=self._ready(config))
        if final.report.reduced_reserve:
            smaller = replace(config, reserved_output_tokens=final.report.reduced_reserve)
            inputs = replace(inputs, config=smaller)
        planned = self.builder.build(
            RequestParts(
                final, inputs, setup.model, setup.address, setup.window,
                head=branch[-1].id if branch else "",
                tool_choice=tool_choice, effort=setup.effort,
                previous_length=self._previous_length,
            )
        )  # fmt: skip
        request = replace(planned.request, max_tokens=self._max_tokens(planned.answer_room))
        return replace(planned, request=request), planned.report.bound - final.report.bound

    def _final(
        self,
        inputs: RequestInputs,
        branch: Sequence[Message],
        plan: ContextPlan | None,
        *,
        pins: PinnedIds | None = None,
        summary: Summary | None = None,
        take_summary: bool = False,
    ) -> FinalPrompt:
        """Run the pipeline on the branch. Raises ContextOverflowError."""
        model, pins = self.setup.model, self._pins if pins is None else pins
        messages = inputs.prompt(branch, model)
        if plan is None or plan.measured.model != model:
            measured = self.counts.measured_sizes(messages, branch, model)
            plan = replace(plan or ContextPlan(), measured=measured)
        return build_final_prompt(
            messages, inputs.config, tools=inputs.tools_as_sent, model=model, plan=plan, pins=pins.on(branch),
            summary=summary, take_summary=take_summary, memo=self.counts.memo,
        )  # fmt: skip

    def _max_tokens(self, room: int) -> int | None:
        """Sent where the provider needs it, or the user set it; never beyond what is left of the window.

        The safety margin is part of what is taken: it is for an upper bound that is too low.
        """
        model = self.setup.model
        is_set = self._runtime.settings.for_model(model).max_output_tokens
        if not is_set and not wire.wants_max_tokens(model):
            return None
        return max(min(room, MAX_ANSWER), 1)

    def _foresee(
        self,
        config: ContextConfig,
        messages: Sequence[Message],
        plan: ContextPlan | None,
        pins: PinnedIds | None = None,
    ) -> tuple[PromptReport, ContextPlan | None]:
        """The report of the next request, also of one that does not fit, and the plan that comes with it."""
        plan, inputs = self._active(plan, config), self.setup.inputs(config)
        try:
            final = self._final(inputs, messages, plan, pins=pins, summary=self._ready(config))
        except ContextOverflowError as error:
            return error.report, error.plan
        return final.report, final.plan

    def _ready(self, config: ContextConfig) -> Summary | None:
        """The newest summary of the branch, as the pipeline knows it; None where there is to be none."""
        return None if config.summarize == "off" else as_summary(self.summary)

    def _active(self, plan: ContextPlan | None, config: ContextConfig) -> ContextPlan | None:
        """`plan`, its summary laid aside where that was taken back, or none is wanted."""
        if plan is None or plan.summary is None or not config.enabled:
            return plan
        newest = self.summary
        is_taken_back = newest is not None and not newest.text and newest.generation > plan.summary.generation
        return replace(plan, summary=None) if config.summarize == "off" or is_taken_back else plan


def _decides_as(plan: ContextPlan, before: ContextPlan | None) -> bool:
    """Does a plan leave everything as the one that it was made from?"""
    return before is not None and (plan.decisions, plan.summary) == (before.decisions, before.summary)
