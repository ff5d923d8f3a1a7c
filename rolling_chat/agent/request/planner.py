"""The next request of a session: planned, previewed, and learned from when it was answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from rolling_chat.agent.memory.pin_scope import PinFinder, PinnedIds, PinScope, pin_scope_of
from rolling_chat.agent.request.builder import (
    MAX_ANSWER,
    PlannedRequest,
    RequestBuilder,
    RequestParts,
    ToolChoice,
    does_not_fit,
)
from rolling_chat.agent.request.cache_misses import CacheMiss
from rolling_chat.agent.request.counting import SessionCounts, new_sizes
from rolling_chat.agent.request.inputs import RequestInputs, SeenBranch
from rolling_chat.agent.request.model_limits import effort_within
from rolling_chat.agent.request.prompt_cache import PromptCache
from rolling_chat.agent.request.setup import RequestSetup
from rolling_chat.agent.runtime import Runtime
from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    FinalPrompt,
    Pins,
    PromptReport,
    Summary,
    build_final_prompt,
    confirm_count,
)
from rolling_chat.context.measured_sizes import (
    NOTHING_MEASURED,
    Confirmed,
    MeasuredSizes,
    TokensByKey,
    characters_of,
)
from rolling_chat.context.plan import PlanIndex
from rolling_chat.context.prompt import rebuild_final_prompt
from rolling_chat.messages import Json, Message, Usage
from rolling_chat.providers import wire
from rolling_chat.sessions.records import Learned, StoredSummary
from rolling_chat.settings.schema import ContextSettings

_FEW = 500  # messages; to look at so many takes some 10 ms
_NEARLY_NONE = 0.05  # of a prompt
_WIRE_ATTEMPTS = 3  # plans that are tried when the wire form comes out longer than what was planned


@dataclass(frozen=True, slots=True)
class Preview:
    """A report of the next request, the plan it was made `since`, and what was found for it.

    Index, sizes and count are None where the request would take decisions of its own.
    """

    report: PromptReport
    since: ContextPlan | None
    index: PlanIndex | None = None
    measured: MeasuredSizes = NOTHING_MEASURED
    confirmed: Confirmed | None = None


@dataclass(frozen=True, slots=True)
class _Stopped:
    """What a model was planned with until another stood in for it."""

    model: str
    address: str | None
    plan: ContextPlan | None
    previous_length: int


def as_summary(stored: StoredSummary | None) -> Summary | None:
    """Return a stored summary as the pipeline's type; None for one that only records an undo."""
    if stored is None or not stored.text:
        return None
    return Summary(stored.text, stored.place, stored.generation, stored.skipped)


class Planner:
    """Plans the requests of one session; between them it keeps the plan and the last request's length."""

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
        self._pin_finder = PinFinder(self._pins)
        self._scope: tuple[str, PinScope] = ("", PinScope())  # of the branch with this head
        self.cache = PromptCache(runtime, setup, session_id)
        self._previous_length = 0
        self._seen_branch = SeenBranch()
        self._new_sizes: TokensByKey = {}  # not yet among the counts
        self._is_counted = False  # the provider has counted a prompt that it was not yet asked to answer
        self._revision = 0
        self._wire_tokens = 0  # by how many the wire form of the last request exceeded its plan
        self._stopped: _Stopped | None = None
        self.setup = setup
        self.summary: StoredSummary | None = None

    @property
    def revision(self) -> int:
        """A number that grows whenever the next request may have changed."""
        return self._revision + self.setup.revision

    def use_model(self, model: str, address: str | None) -> None:
        """Plan for another model from now on, whose provider has nothing cached."""
        self._stopped, self._is_counted = None, False
        self._new_sizes = {}
        self._previous_length = self._wire_tokens = 0
        self.setup.use_model(model, address)

    def stand_in(self, model: str, address: str | None) -> None:
        """Plan for another model until `stand_back`; the prompt of the one before is what its cache has."""
        stopped = self._stopped or _Stopped(
            self.setup.model, self.setup.address, self._plan, self._previous_length
        )
        self.use_model(model, address)
        self._stopped = stopped

    def stand_back(self) -> None:
        """Plan for the model before `stand_in` again, from where it stopped."""
        if (stopped := self._stopped) is None:
            return
        self.use_model(stopped.model, stopped.address)
        self.use_plan(stopped.plan)
        self._previous_length = stopped.previous_length

    def load_plan(self, plan: Json) -> None:
        """Replace the plan with the stored one of a branch that the session has moved to."""
        self._new_sizes = {}
        stored = ContextPlan.from_json(plan) if isinstance(plan, dict) else None
        # the sizes are among the session's counts, which the next look at the branch takes them from
        self.use_plan(replace(stored, measured=NOTHING_MEASURED) if stored is not None else None)
        if self._stopped is not None:
            self._stopped = replace(self._stopped, plan=self._plan, previous_length=0)
        self._previous_length = self._wire_tokens = 0
        self.read_summary()

    def read_summary(self) -> None:
        """Read the newest summary of the branch from the store."""
        self.summary = self._runtime.store.summary(self._session_id)
        self._revision += 1

    def planned(self, branch: Sequence[Message]) -> Sequence[Message]:
        """Return the messages to plan the next request from: the system prompt, then the branch."""
        setup = self.setup
        return setup.inputs(setup.config).prompt(branch, setup.model, self._seen_branch)

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
        self._pins, self._pin_finder = pins, PinFinder(pins)
        self._scope = ("", PinScope())
        self._revision += 1

    def pins_on(self, branch: Sequence[Message]) -> Pins:
        """Return the session's pins as indices of the prompt's messages, those of other branches skipped."""
        return self._pin_finder.on(branch)

    def pin_scope(self, branch: Sequence[Message]) -> PinScope:
        """Return which messages of a branch the pins and exclusions affect."""
        head = branch[-1].id if branch else ""
        if self._scope[0] != head:
            self._scope = (head, pin_scope_of(branch, self._pins))
        return self._scope[1]

    def plan_under(self, context: ContextSettings, messages: Sequence[Message]) -> ContextPlan | None:
        """Return the plan to continue from with the settings `context`; one without decisions, or None, to
        plan from scratch.

        What left stays away, so that the prefix stands still, unless planning anew would keep more.
        """
        if self._plan is None or context == self._runtime.settings.context:
            return self._plan
        config = self.setup.config_under(context, rolling=True)
        kept, anew = (self._foresee(config, messages, plan)[0] for plan in (self._plan, None))
        is_better = not kept.within_budget or anew.token_count > kept.token_count
        return self._plan.afresh() if is_better else self._plan

    def observe(self, reported: int) -> bool:
        """Calibrate with the provider's token count of the prompt planned last; 0 means that it gave none.

        Return whether it can be a count of that prompt. Call `remember_sizes` afterwards.
        """
        return self._plan is not None and self.confirm(self._plan, reported)

    def confirm(self, plan: ContextPlan, reported: int, *, is_counted: bool = False) -> bool:
        """Take over the provider's count of the prompt of `plan`; return whether it can be one.

        `is_counted` where it was only counted, and not answered: then it is of this prompt alone.
        """
        confirmed, group = confirm_count(plan, reported, is_certain=is_counted, memo=self.counts.memo)
        if confirmed is plan:
            return False
        if confirmed.sent is not None:  # not believed yet
            self._plan = confirmed
            return False
        sent = plan.sent.items if plan.sent is not None else ()
        found = new_sizes(sent, plan.measured.of(self.setup.model), confirmed.measured)
        self._new_sizes = {**self._new_sizes, **found}
        self._plan, self._is_counted = confirmed, is_counted
        self.setup.measure(group, is_counted=is_counted)
        return True

    def learn_refusal(self, planned: PlannedRequest, counted: int, branch: Sequence[Message]) -> bool:
        """Learn from the refusal of a request as too long, which named its tokens; `counted` 0 for none.

        Return whether it proved wrong what the provider had counted beforehand. Then nothing that it
        counted is believed any more, now or in a later process.
        """
        plan = self._plan
        is_wrong = self._has_counted(planned) and not 0 < counted <= planned.report.bound
        if is_wrong and plan is not None:
            model, self._new_sizes, self._is_counted = self.setup.model, {}, False
            self.setup.distrust_counts()
            self.counts.forget(branch, model)
            plan = replace(plan, measured=MeasuredSizes(model), confirmed=None, index=None)
            self.use_plan(confirm_count(plan, counted, is_certain=True, memo=self.counts.memo).plan)
        else:
            self.observe(counted)
        self.remember_sizes(branch)
        return is_wrong

    def _has_counted(self, planned: PlannedRequest) -> bool:
        """Whether the provider has counted nearly all of a prompt, and not by answering one."""
        items = planned.plan.sent.items if planned.plan.sent else ()
        estimated = sum(item.tokens for item in items if not item.measured)
        return self._is_counted and estimated <= _NEARLY_NONE * planned.report.token_count

    def untrimmed(
        self, branch: Sequence[Message], tool_choice: ToolChoice, wanted: Callable[[FinalPrompt], bool]
    ) -> PlannedRequest | None:
        """Return the next request with no more decisions than the plan has, if it is `wanted`.

        It need not fit.
        """
        config = self.setup.config
        inputs = self.setup.inputs(config)
        messages, plan = self._given(inputs, branch, self._active(self._plan, config))
        final = rebuild_final_prompt(
            messages, config, tools=inputs.tools_as_sent, model=self.setup.model, plan=plan,
            pins=self.pins_on(branch), memo=self.counts.memo,
        )  # fmt: skip
        final = final._replace(plan=replace(final.plan, is_cold=plan.is_cold))
        return self._built(final, inputs, branch, tool_choice) if wanted(final) else None

    def remember_sizes(self, branch: Sequence[Message]) -> None:
        """Add what was measured of `branch` since the last time to the session's counts, to be stored."""
        sizes, self._new_sizes = self._new_sizes, {}
        plan = self._plan
        if not sizes or plan is None or plan.index is None:
            return
        end = min(len(branch), plan.index.seen - 1)  # the system message is no part of the branch
        self.counts.measure(branch, sizes, self.setup.model, plan.confirmed, end)

    def succeed(self, usage: Usage, reply: Message, branch: Sequence[Message]) -> None:
        """Learn from an answered request, whose reply is in `branch`; discard a learned limit below it."""
        reported = usage.input_tokens
        self._is_counted = False
        is_believed = self.observe(0 if usage.is_sum else reported)
        if is_believed:  # else what the same usage says of the reply is not to be believed
            self.remember_sizes(branch)
            self._measure_reply(usage, reply, branch)
        else:
            self.setup.note_try()
        # a sum of several requests says nothing about what one may take
        if 0 < self.setup.learned.limit < reported and (is_believed or self._plan is None):
            self.setup.learn(Learned())

    def _measure_reply(self, usage: Usage, reply: Message, branch: Sequence[Message]) -> None:
        """Take what the provider reported of a reply for its size, until a prompt's count has it."""
        model, later = self.setup.model, takewhile(lambda one: one is not reply, reversed(branch))
        (seen,) = wire.for_model([reply], model, pictures=self.setup.takes_pictures)
        size = self.counts.measure_reply(reply, usage, seen, model, self.setup.measurements.calibration)
        if size is None or self._plan is None:
            return
        key = (len(branch) - len(list(later)), characters_of(seen))
        measured = self._plan.measured.of(model).add_replies({key: size})
        self._plan = replace(self._plan, measured=measured)
        self._revision += 1

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
            return Preview(report, since)
        return Preview(report, since, plan.index, plan.measured, plan.confirmed)

    def keep(self, look: Preview) -> None:
        """Keep the index and sizes of a preview, unless the plan has changed since or waits for its count.

        What a request would decide is not decided by looking: what was seen beside it is not kept either.
        """
        if look.index is None or self._plan is not look.since or (look.since and look.since.sent):
            return
        known = look.since or ContextPlan()
        self._plan = replace(known, index=look.index, measured=look.measured, confirmed=look.confirmed)

    def plan_question(
        self, branch: Sequence[Message], question: str, tool_choice: ToolChoice
    ) -> PlannedRequest | None:
        """Plan the chat's own request with a question for a summary behind it; None where it would not fit.

        Nothing is changed.
        """
        config, asked = self.setup.config, [*branch, Message("user", question)]
        inputs = self.setup.inputs(config)
        try:
            final = self._final(inputs, asked, self._active(self._plan, config), summary=self._ready(config))
        except ContextOverflowError:
            return None
        planned = self._built(final, inputs, branch, tool_choice, question)
        return planned if planned.report.within_budget else None

    def plan(
        self, branch: Sequence[Message], *, tool_choice: ToolChoice = "auto", most: int = 0
    ) -> PlannedRequest:
        """Plan the next request, counted on its wire form; `take` makes its plan the current one.

        Nothing is changed. `most` above 0 holds the upper bound of this one request to so many tokens.
        Raises ContextOverflowError.
        """
        config, plan = replace(self.setup.config, input_limit=most), self._plan
        for _ in range(_WIRE_ATTEMPTS):
            planned = self._attempt(branch, config, plan, tool_choice)
            if planned.report.within_budget:
                return planned
            # The wire copy adds a little of its own: leave that much room for it, and plan again.
            room = min(planned.room, most) if most else planned.room
            config, plan = replace(config, input_limit=max(room - planned.wire_tokens, 1)), planned.plan
        raise does_not_fit(planned.report, config)

    def take(self, planned: PlannedRequest) -> None:
        """Make the plan of a request that is being sent the current one."""
        self._plan = planned.plan
        # what left stays away, and what is sent is bounded otherwise: the report of before is another
        self._revision += planned.report.trimmed or planned.wire_tokens != self._wire_tokens
        self._wire_tokens = planned.wire_tokens
        self._previous_length = len(planned.request.messages)

    def is_quick(self, branch: Sequence[Message]) -> bool:
        """Return whether few messages have changed since the last plan, so that planning is quick."""
        seen = self._plan.seen_under(self.setup.config, self.setup.model) if self._plan is not None else 0
        return abs(len(branch) + 1 - seen) <= _FEW

    def notice_idleness(self) -> None:
        """Mark the plan as uncached once the provider has dropped its cache of the session."""
        if self._plan is not None and self.cache.is_cold:
            self._plan = self._plan.cold()

    def record(self, planned: PlannedRequest) -> str:
        """Log the request in the store before it is sent; return the record's id."""
        self._runtime.store.update_session(self._session_id, plan=planned.record.plan)
        return self._runtime.store.log_request(planned.record, planned.inputs)

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
        """Plan once; the wire form of the request may be too long."""
        inputs = self.setup.inputs(config)
        final = self._final(inputs, branch, self._active(plan, config), summary=self._ready(config))
        if final.report.reduced_reserve:
            margin = config.safety_margin if final.report.margin else 0.0
            smaller = replace(
                config, reserved_output_tokens=final.report.reduced_reserve, safety_margin=margin
            )
            inputs = replace(inputs, config=smaller)
        return self._built(final, inputs, branch, tool_choice)

    def _built(
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
                previous_length=self._previous_length, question=question, is_warm=bool(question),
                purpose="summary" if question else "answer",
            )
        )  # fmt: skip
        most = self._max_tokens(planned.answer_room)
        request = replace(planned.request, max_tokens=most, effort=effort_within(setup.effort, most))
        return replace(planned, request=request)

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
        model = self.setup.model
        messages, plan = self._given(inputs, branch, plan)
        return build_final_prompt(
            messages, inputs.config, tools=inputs.tools_as_sent, model=model, plan=plan,
            pins=self.pins_on(branch) if pins is None else pins.on(branch),
            summary=summary, take_summary=take_summary, memo=self.counts.memo,
        )  # fmt: skip

    def _given(
        self, inputs: RequestInputs, branch: Sequence[Message], plan: ContextPlan | None
    ) -> tuple[Sequence[Message], ContextPlan]:
        """The messages to plan, and the plan with what the model has counted of them."""
        model, plan = self.setup.model, plan or ContextPlan()
        messages = inputs.prompt(branch, model, self._seen_branch)
        if plan.measured.model != model:
            measured = self.counts.measured_sizes(messages, branch, model)
            confirmed = self.counts.confirmed(branch, measured)
            plan = replace(plan, measured=measured, confirmed=confirmed or plan.confirmed)
        return messages, plan

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
        """The report of the next request, also of one that does not fit, and the plan that comes with it.

        Its wire form is taken for as much longer than the plan as that of the last request.
        """
        report, made = self._planned_as(config, messages, plan, pins)
        longer = self._wire_tokens
        if not longer:
            return report, made
        if report.within_budget and report.tested + longer > report.room:
            config = replace(config, input_limit=max(report.room - longer, 1))
            report, made = self._planned_as(config, messages, plan, pins)
        unproven = report.unproven and report.unproven + longer
        grown = replace(report, bound=report.bound + longer, unproven=unproven)
        return replace(grown, within_budget=report.within_budget and grown.tested <= grown.room), made

    def _planned_as(
        self,
        config: ContextConfig,
        messages: Sequence[Message],
        plan: ContextPlan | None,
        pins: PinnedIds | None,
    ) -> tuple[PromptReport, ContextPlan | None]:
        """The report and the plan of the next request, before it gets its wire form."""
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
