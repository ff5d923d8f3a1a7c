"""From settings, catalogue and conversation to a request that is proved to fit, and its record."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from rolling_chat.agent.memory.pin_scope import PinnedIds, PinScope, held_on
from rolling_chat.agent.models import call_address
from rolling_chat.agent.request.inputs import RequestInputs, canonical, digest, wire_hash
from rolling_chat.agent.request.instructions import MAX_BYTES, read_instructions, system_prompt
from rolling_chat.agent.request.measured import known_sizes, new_sizes, remember
from rolling_chat.agent.request.model_limits import (
    context_config,
    knowledge_of,
    offers_tools,
    output_limit,
    window_of,
)
from rolling_chat.agent.request.planned import (
    PlannedRequest,
    Preview,
    as_summary,
    does_not_fit,
    reserve_of,
    room_of,
)
from rolling_chat.agent.runtime import Runtime
from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    Measurements,
    PromptReport,
    Summary,
    build_final_prompt,
    confirm_count,
    prompt_bound,
)
from rolling_chat.context.tokens import bounding_estimator
from rolling_chat.messages import Json, Message, Usage
from rolling_chat.providers import wire
from rolling_chat.providers.protocol import Request
from rolling_chat.sessions.records import Learned, RequestRecord, StoredSummary
from rolling_chat.settings.schema import ContextSettings
from rolling_chat.tools import Tool
from rolling_chat.tools.memory import RECALL

PIPELINE_VERSION = 2
"""Grows when the same conversation, settings and plan would make another prompt."""

MAX_ANSWER = 32_000
"""The most that is ever asked for as `max_tokens`."""

_CACHE_SECONDS = 300.0
"""How long providers keep a prompt in their cache after it was last used."""

_FEW = 500  # messages; to look at so many takes some 10 ms
_WIRE_ATTEMPTS = 3  # plans that are tried when the wire form comes out longer than what was planned


class Planner:
    """Makes the requests of one chat.

    It remembers what has to stand still between them: the system prompt, the plan, and the length
    of the request before.
    """

    def __init__(
        self,
        runtime: Runtime,
        *,
        session_id: str,
        started_at: float,
        model: str,
        rolling: bool,
        tools: Sequence[Tool],
        address: str | None = "",
    ) -> None:
        self._runtime = runtime
        self._session_id = session_id
        self._started_at = started_at
        self._all_tools = tuple(tools)
        self._plan: ContextPlan | None = None
        self._pins = PinnedIds()
        self._held: tuple[str, PinScope] = ("", PinScope())  # of the branch with this head
        self._planned_at = 0.0
        self._previous_length = 0
        self._wire_bounds: dict[bytes, int] = {}
        self._new_sizes: dict[int, int] = {}  # by place in the prompt; not yet noted with the messages
        self.revision = 0  # grows whenever the next request may be another than it was
        self.measurements = Measurements()
        self.model = model
        self.address = address  # of its server: empty for the provider's own, None where unknown
        self.rolling = rolling
        self.instructions = ""
        self.summary: StoredSummary | None = None
        self._read_learned()
        self.read_instructions()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model is offered: none where it is known to take none.

        With rolling on `recall` is among them from the first request, so that the prompt stands still.
        """
        return self._offered(rolling=self.rolling)

    @property
    def config(self) -> ContextConfig:
        """The pipeline's configuration for the next request."""
        return self._config(self._runtime.settings.context, rolling=self.rolling)

    @property
    def window(self) -> int:
        """W in the model's own tokens."""
        runtime = self._runtime
        return window_of(self.model, runtime.settings, runtime.catalog, self.learned)

    def read_instructions(self) -> None:
        """Read AGENTS.md again: done once a turn, so that the prompt stands still within it."""
        # As many bytes as the window has tokens are about a quarter of it.
        self.instructions = read_instructions(self._runtime.folder, min(MAX_BYTES, self.window))

    def use_model(self, model: str, address: str | None) -> None:
        """Plan for another model from now on; its provider has nothing cached."""
        self.model, self.address = model, address
        self._new_sizes = {}
        self._previous_length = 0
        self._read_learned()
        self.read_instructions()

    def load_plan(self, plan: Json) -> None:
        """Take up the decisions that a branch was left with; its messages are not those of before."""
        self._new_sizes = {}
        self.use_plan(ContextPlan.from_json(plan) if isinstance(plan, dict) else None)
        self._previous_length = 0
        self.read_summary()

    def read_summary(self) -> None:
        """Read which summary counts on the branch of the session's head."""
        self.summary = self._runtime.store.summary(self._session_id)
        self.revision += 1

    def planned(self, branch: Sequence[Message]) -> list[Message]:
        """The messages that the next request is planned from: the system prompt, then the branch."""
        return self._basis(self.config).prompt(branch, self.model)

    def plan_with(
        self, branch: Sequence[Message], summary: Summary | None, *, anew: bool = False
    ) -> tuple[ContextPlan | None, PromptReport]:
        """What the next request would be with `summary` in force at once; nothing is changed.

        With `anew` all that left comes back where there is room. The plan is None where the request
        would not fit.
        """
        config, plan = self.config, self._plan
        if anew:
            plan = replace(plan, seen=0) if plan is not None else None
        basis = self._basis(config)
        messages = basis.prompt(branch, self.model)
        try:
            final = build_final_prompt(
                messages, config, tools=basis.tools, model=self.model,
                plan=self._sized(plan, messages), pins=self._pins.on(branch),
                summary=summary, take_summary=True,
            )  # fmt: skip
        except ContextOverflowError as error:
            return None, error.report
        return final.plan, final.report

    @property
    def decisions(self) -> ContextPlan | None:
        """The plan that the next request goes by, laid aside while rolling is off."""
        return self._plan

    def use_plan(self, plan: ContextPlan | None) -> None:
        """Go by another plan; one that does not match the branch is set aside by the pipeline."""
        self._plan = plan
        self.revision += 1

    @property
    def pins(self) -> PinnedIds:
        """What the person pinned and excluded in this session, on whatever branch."""
        return self._pins

    def use_pins(self, pins: PinnedIds) -> None:
        """Go by other pins from the next request on; the plan's decisions stay as far as pins leave them."""
        self._pins = pins
        self._held = ("", PinScope())
        self.revision += 1

    def held(self, branch: Sequence[Message]) -> PinScope:
        """What the pins come to on a branch of this session."""
        head = branch[-1].id if branch else ""
        if self._held[0] != head:
            self._held = (head, held_on(branch, self._pins))
        return self._held[1]

    def plan_under(self, context: ContextSettings, messages: Sequence[Message]) -> ContextPlan | None:
        """The plan to go on with under `context`: the one there is, or none to plan anew.

        What left stays away, so that the prefix stands still, unless planning anew would keep more.
        """
        if self._plan is None or context == self._runtime.settings.context:
            return self._plan
        config = self._config(context, rolling=True)
        kept, anew = (self._foresee(config, messages, plan)[0] for plan in (self._plan, None))
        return None if not kept.within_budget or anew.token_count > kept.token_count else self._plan

    def learn(self, learned: Learned) -> None:
        """Keep what a refusal taught of this model's window, for the next process as well."""
        self._runtime.store.keep_learned(self.model, self.address or "", learned)
        self.learned = learned
        self.revision += 1

    def observe(self, reported: int) -> None:
        """Take in what the provider counted of the prompt that was planned last; 0: it did not say."""
        if self._plan is None:
            return
        plan, group = confirm_count(self._plan, reported)
        if plan is self._plan:
            return
        self._new_sizes |= new_sizes(self._plan.measured.of(self.model), plan.measured)
        self._plan = plan
        self.measurements = self.measurements.add(group)
        self._runtime.store.keep_measured(self.model, self.address or "", self.measurements.to_json())
        self.revision += 1

    def remember_sizes(self, branch: Sequence[Message]) -> None:
        """Note with the messages of `branch`, for the store, what the model counted of them since."""
        sizes, self._new_sizes = self._new_sizes, {}
        remember(branch, sizes, self.model)

    def succeed(self, reported: int) -> None:
        """Take in the count of a request that was answered: a limit below it was none."""
        self.observe(reported)
        if 0 < self.learned.limit < reported:
            self.learn(Learned())

    def preview(
        self,
        messages: Sequence[Message],
        *,
        context: ContextSettings | None = None,
        rolling: bool | None = None,
        pins: PinnedIds | None = None,
    ) -> PromptReport:
        """The report of the next request, also of one that does not fit; nothing is changed.

        `context`, `rolling` and `pins` ask what it would be under others.
        """
        context = context or self._runtime.settings.context
        config = self._config(context, rolling=self.rolling if rolling is None else rolling)
        return self._foresee(config, messages, self.plan_under(context, messages), pins)[0]

    def look(self, messages: Sequence[Message]) -> Preview:
        """The report of the next request, also of one that does not fit; nothing is changed.

        What was seen for it is for `keep`, so that the next look is only at what is new.
        """
        since = self._plan
        report, plan = self._foresee(self.config, messages, since)
        if plan is None or (self.rolling and not _decides_as(plan, since)):
            return Preview(report, since, None)
        return Preview(report, since, plan.index, plan.measured)

    def keep(self, look: Preview) -> None:
        """Remember what a look saw, unless another plan has been taken since, or waits for its count.

        What a request would decide is not decided by looking: what was seen beside it is not kept either.
        """
        if look.index is None or self._plan is not look.since or (look.since and look.since.sent):
            return
        self._plan = replace(look.since or ContextPlan(), index=look.index, measured=look.measured)

    def plan(
        self, branch: Sequence[Message], *, tool_choice: Literal["auto", "none"] = "auto", most: int = 0
    ) -> PlannedRequest:
        """The next request, counted on the form in which it is sent; `take` goes by it.

        Nothing is changed. `most` above 0 holds the upper bound of this one request to so many tokens.
        Raises ContextOverflowError.
        """
        config, plan = replace(self.config, input_limit=most), self._plan
        room = min(room_of(config), most) if most else room_of(config)
        for _ in range(_WIRE_ATTEMPTS):
            planned, added = self._attempt(branch, config, plan, tool_choice)
            if planned.report.within_budget:
                return planned
            # The wire copy adds a little of its own: leave that much room for it, and plan again.
            config, plan = replace(config, input_limit=max(room - added, 1)), planned.plan
        raise does_not_fit(planned.report, config)

    def take(self, planned: PlannedRequest) -> None:
        """Go by a request that was planned: it is sent now."""
        self._plan = planned.plan
        self.revision += planned.report.trimmed  # what left stays away: the report of before is another
        self._previous_length = len(planned.request.messages)

    def is_quick(self, branch: Sequence[Message]) -> bool:
        """Would a look, or a plan, look at few messages that were not looked at before?"""
        seen = self._plan.seen_under(self.config, self.model) if self._plan is not None else 0
        return abs(len(branch) + 1 - seen) <= _FEW

    def notice_idleness(self) -> None:
        """Tell the plan when the provider has forgotten the prompt: a trim costs nothing then."""
        now = self._runtime.clock()
        if self._plan is not None and now - self._planned_at > _CACHE_SECONDS:
            self._plan = self._plan.cold()
        self._planned_at = now

    def record(self, planned: PlannedRequest) -> str:
        """Write the request to the log before it is sent; returns the record's id."""
        self._runtime.store.update_session(self._session_id, plan=planned.record.plan)
        return self._runtime.store.log_request(planned.record, planned.basis)

    def finish(self, record_id: str, usage: Usage, seconds: float, error: str) -> None:
        """Complete the record with what came back."""
        self._runtime.store.finish_request(record_id, usage=usage, seconds=seconds, error=error)

    def _attempt(
        self,
        branch: Sequence[Message],
        config: ContextConfig,
        plan: ContextPlan | None,
        tool_choice: Literal["auto", "none"],
    ) -> tuple[PlannedRequest, int]:
        """One plan, and how many tokens its wire form is longer than what was planned."""
        basis = self._basis(config)
        messages = basis.prompt(branch, self.model)
        final = build_final_prompt(
            messages, config, tools=basis.tools, model=self.model,
            plan=self._sized(self._in_force(plan, config), messages), pins=self._pins.on(branch),
            summary=self._ready(config),
        )  # fmt: skip
        request = self._request(tuple(final.messages), tool_choice)
        sent = [canonical(message) for message in self._runtime.provider.wire_form(request)]
        bound = final.report.bound + self._surplus(sent, final.messages, config)
        room, reserve = room_of(config), reserve_of(config)
        report = replace(final.report, bound=bound, reserve=reserve, within_budget=bound <= room)
        request = replace(
            request, max_tokens=self._max_tokens(max(bound, report.token_count) + report.margin)
        )
        basis_json = basis.to_json()
        record = RequestRecord(
            id="",
            session_id=self._session_id,
            head=branch[-1].id if branch else "",
            model=self.model,
            plan=final.plan.to_json(with_sizes=False),
            settings_digest=digest(basis_json),
            pipeline_version=PIPELINE_VERSION,
            wire_hash=wire_hash(sent, basis.tools),
            estimated=report.token_count,
            bound=bound,
            created_at=self._runtime.clock(),
            totals=report.totals(),
        )
        planned = PlannedRequest(
            request, report, wire.made_by(self.model), record, basis_json, room, final.plan
        )
        return planned, bound - final.report.bound

    def _request(self, messages: tuple[Message, ...], tool_choice: Literal["auto", "none"]) -> Request:
        return Request(
            model=self.model,
            messages=messages,
            tools=tuple(self._schemas()),
            tool_choice=tool_choice,
            window=self.window,
            session_id=self._session_id,
            api_base=call_address(self._runtime, self.model, self.address),
            previous_length=self._previous_length,
            stable_system_chars=len(self._system()),
        )

    def _max_tokens(self, taken: int) -> int | None:
        """Sent where the provider needs it, or the user set it; never beyond what is left of the window.

        The safety margin is part of what is taken: it is for an upper bound that is too low.
        """
        configured = self._runtime.settings.for_model(self.model).max_output_tokens
        if not configured and not wire.wants_max_tokens(self.model):
            return None
        limit = output_limit(self.model, self._runtime.settings, self._runtime.catalog) or MAX_ANSWER
        return max(min(limit, MAX_ANSWER, self.window - taken), 1)

    def _surplus(self, sent: Sequence[bytes], planned: Sequence[Message], config: ContextConfig) -> int:
        """What the wire form adds to what was planned, as an upper bound in tokens."""
        schemas = self._schemas()
        more = self._plain_bound(sent) - prompt_bound(planned, tools=schemas, model=self.model)
        # a bridge or a placeholder was never counted by itself
        estimator = bounding_estimator(self.model, config.calibration)
        return math.ceil(more * max(1.0, estimator.prior / estimator.family.prior))

    def _plain_bound(self, sent: Sequence[bytes]) -> int:
        """The bound of the wire form before any correction; what was counted for the last request is not
        counted again."""
        framing = prompt_bound((), model=self.model)
        fresh: dict[bytes, int] = {}
        for text in sent:
            key = self.model.encode() + b"\0" + text
            known = self._wire_bounds.get(key)
            if known is None:
                known = prompt_bound([json.loads(text)], model=self.model) - framing
            fresh[key] = known
        self._wire_bounds = fresh
        total = sum(fresh[self.model.encode() + b"\0" + text] for text in sent)
        return total + prompt_bound((), tools=self._schemas(), model=self.model)

    def _foresee(
        self,
        config: ContextConfig,
        messages: Sequence[Message],
        plan: ContextPlan | None,
        pins: PinnedIds | None = None,
    ) -> tuple[PromptReport, ContextPlan | None]:
        """The report of the next request, also of one that does not fit, and the plan that comes with it."""
        basis, pins = self._basis(config), self._pins if pins is None else pins
        planned = basis.prompt(messages, self.model)
        plan = self._sized(self._in_force(plan, config), planned)
        try:
            final = build_final_prompt(
                planned, config, tools=basis.tools, model=self.model,
                plan=plan, pins=pins.on(messages), summary=self._ready(config),
            )  # fmt: skip
        except ContextOverflowError as error:
            return error.report, error.plan
        return final.report, final.plan

    def _ready(self, config: ContextConfig) -> Summary | None:
        """The newest summary of the branch, as the pipeline knows it; None where there is to be none."""
        return None if config.summarize == "off" else as_summary(self.summary)

    def _in_force(self, plan: ContextPlan | None, config: ContextConfig) -> ContextPlan | None:
        """`plan`, its summary laid aside where that was taken back, or none is wanted."""
        if plan is None or plan.summary is None or not config.enabled:
            return plan
        newest = self.summary
        is_taken_back = newest is not None and not newest.text and newest.generation > plan.summary.generation
        return replace(plan, summary=None) if config.summarize == "off" or is_taken_back else plan

    def _sized(self, plan: ContextPlan | None, planned: Sequence[Message]) -> ContextPlan:
        """`plan`, with what this model counted of the messages, where it does not know that yet."""
        if plan is not None and plan.measured.model == self.model:
            return plan
        return replace(plan or ContextPlan(), measured=known_sizes(planned, self.model))

    def _config(self, context: ContextSettings, *, rolling: bool) -> ContextConfig:
        return context_config(
            self.model, replace(self._runtime.settings, context=context), self._runtime.catalog,
            rolling=rolling, system=self._system(rolling=rolling), tools=self._schemas(rolling=rolling),
            learned=self.learned, calibration=self.measurements.calibration,
        )  # fmt: skip

    def _offered(self, *, rolling: bool) -> tuple[Tool, ...]:
        if not offers_tools(self.model, self._runtime.catalog):
            return ()
        return tuple(tool for tool in self._all_tools if rolling or tool.name != RECALL)

    def _basis(self, config: ContextConfig) -> RequestInputs:
        system = self._system(rolling=config.enabled)
        return RequestInputs(config, system, tuple(self._schemas(rolling=config.enabled)))

    def _read_learned(self) -> None:
        known = knowledge_of(self.model, self.address or "", self._runtime.store)
        self.learned, self.measurements = known.learned, known.measurements
        self.revision += 1

    def _system(self, *, rolling: bool | None = None) -> str:
        tools = self._offered(rolling=self.rolling if rolling is None else rolling)
        return system_prompt(self._runtime.folder, self._started_at, tools, self.instructions)

    def _schemas(self, *, rolling: bool | None = None) -> list[dict[str, Json]]:
        return [tool.schema for tool in self._offered(rolling=self.rolling if rolling is None else rolling)]


def _decides_as(plan: ContextPlan, before: ContextPlan | None) -> bool:
    """Does a plan leave everything as the one that it was made from?"""
    return before is not None and (plan.decisions, plan.summary) == (before.decisions, before.summary)
