"""From a planned prompt to a request: its wire form, the proof that it fits, and its record."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from rolling_chat.agent.models import call_address
from rolling_chat.agent.request.cache_misses import NO_PREFIX, PromptPrefix
from rolling_chat.agent.request.inputs import RequestInputs, canonical, digest, wire_hash
from rolling_chat.agent.request.model_limits import cache_ttl_of, output_limit
from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    CountMemo,
    FinalPrompt,
    PromptReport,
    prompt_bound,
)
from rolling_chat.context.budget import smallest_window, window_budget
from rolling_chat.context.tokens import bounding_estimator
from rolling_chat.messages import JsonObject, MadeBy
from rolling_chat.providers import wire
from rolling_chat.providers.protocol import Request
from rolling_chat.sessions.records import RequestRecord

if TYPE_CHECKING:  # it imports the providers, which rebuilding a stored request does not need
    from rolling_chat.agent.runtime import Runtime

PIPELINE_VERSION = 2
"""Increased when the same conversation, settings and plan would make a different prompt."""

MAX_ANSWER = 32_000
"""The largest `max_tokens` that a request asks for."""

ToolChoice: TypeAlias = Literal["auto", "none"]
WireForm: TypeAlias = Callable[[Request], Sequence[JsonObject]]


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """A request, its report, and its record for the store.

    `inputs` is what it was made from. `room` is the maximum for its upper bound, and `answer_room` what the
    window leaves for an answer, both in tokens. `plan` has the decisions behind it. `prefix` is what the
    provider's cache recognizes it by. `wire_tokens` is how many tokens its wire form adds to the plan.
    """

    request: Request
    report: PromptReport
    made_by: MadeBy
    record: RequestRecord
    inputs: JsonObject
    room: int
    answer_room: int
    plan: ContextPlan
    prefix: PromptPrefix = NO_PREFIX
    wire_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RequestParts:
    """The parts of a request: a prompt planned from `inputs`, and the model that it goes to.

    `head` is the id of the branch's last message. `correction` multiplies the plain bound of the whole wire
    form, for text whose size no reply has revealed; without it, the bound is that of the plan and what the
    wire form adds. The `question` for a summary is stored with the inputs; with `is_warm` it follows the
    chat's own prompt, which the provider then reads from its cache.
    """

    final: FinalPrompt
    inputs: RequestInputs
    model: str
    address: str | None
    window: int
    head: str
    purpose: Literal["answer", "summary"] = "answer"
    tool_choice: ToolChoice = "auto"
    effort: str = ""
    previous_length: int = 0
    correction: float | None = None
    question: str = ""
    is_warm: bool = False


@dataclass(frozen=True, slots=True)
class Assembled:
    """A request with its wire form: each message in canonical JSON, and the hash of it."""

    request: Request
    sent: Sequence[bytes]
    hash: str


def assemble(request: Request, wire_form: WireForm) -> Assembled:
    """Return a request with its wire form."""
    sent = [canonical(message) for message in wire_form(request)]
    return Assembled(request, sent, wire_hash(sent, request.tools))


def prefix_of(
    assembled: Assembled, inputs: RequestInputs, sizes: Sequence[int] = (), tools_size: int = 0
) -> PromptPrefix:
    """Return what a provider's cache recognizes a request by; `sizes` are the messages' tokens."""
    request = assembled.request
    known = sizes or [0] * len(assembled.sent)
    return PromptPrefix(
        hash(canonical(list(request.tools))),
        hash(inputs.system),
        request.tool_choice,
        request.effort,
        tuple((hash(text), size) for text, size in zip(assembled.sent, known, strict=True)),
        tools_size,
    )


def growth_of(model: str, config: ContextConfig) -> float:
    """Return the factor by which the model's replies suggest raising a plain bound."""
    estimator = bounding_estimator(model, config.calibration)
    return estimator.prior / estimator.family.prior


def does_not_fit(report: PromptReport, config: ContextConfig) -> ContextOverflowError:
    """Return the error for a prompt that is too long even at its smallest."""
    return ContextOverflowError(
        current=report.tested,
        maximum=report.room,
        largest=[("history", report.history), ("current turn", report.current), ("system", report.system)],
        smallest_window=smallest_window(config, report.tested),
        report=report,
    )


class RequestBuilder:
    """Builds the requests of one session, for answers and summaries; `memo` has its messages' counts."""

    def __init__(self, runtime: Runtime, session_id: str, memo: CountMemo) -> None:
        self._runtime = runtime
        self._session_id = session_id
        self._memo = memo
        self._bounds: dict[bytes, int] = {}  # of the last request's messages, by model and wire form

    def build(self, parts: RequestParts) -> PlannedRequest:
        """Build a request; its report says whether its wire form fits the window."""
        assembled = assemble(self._request(parts), self._runtime.provider.wire_form)
        sizes, tools_size = self._sizes(parts, assembled.sent)
        bound = self._bound(parts, sum(sizes) + tools_size)
        budget = window_budget(parts.inputs.config)
        planned = parts.final.report
        unproven = planned.unproven and planned.unproven + bound - planned.bound
        report = replace(planned, bound=bound, unproven=unproven, reserve=budget.reserve)
        report = replace(report, within_budget=report.tested <= budget.room)
        limit = output_limit(parts.model, self._runtime.settings, self._runtime.catalog) or MAX_ANSWER
        free = report.window - report.margin - max(report.tested, report.token_count)
        question = {"question": parts.question} if parts.purpose == "summary" else {}
        inputs: JsonObject = {**question, **parts.inputs.to_json()}
        return PlannedRequest(
            assembled.request, report, wire.made_by(parts.model),
            self._record(parts, assembled, report, digest(inputs)), inputs, budget.room,
            min(limit, free), parts.final.plan,
            prefix_of(assembled, parts.inputs, sizes, tools_size), bound - parts.final.report.bound,
        )  # fmt: skip

    def _request(self, parts: RequestParts) -> Request:
        return Request(
            model=parts.model,
            messages=tuple(parts.final.messages),
            tools=tuple(dict(tool) for tool in parts.inputs.tools),
            tool_choice=parts.tool_choice,
            effort=parts.effort,
            window=parts.window,
            # it is the key of the prompt cache
            session_id=self._session_id if parts.purpose == "answer" or parts.is_warm else "",
            api_base=call_address(self._runtime, parts.model, parts.address),
            previous_length=parts.previous_length,
            stable_system_chars=len(parts.inputs.system),
            cache_ttl=cache_ttl_of(parts.model, self._runtime.settings, self._runtime.catalog),
            text_tools=parts.inputs.text_tools,
        )

    def _record(
        self, parts: RequestParts, assembled: Assembled, report: PromptReport, settings_digest: str
    ) -> RequestRecord:
        has_plan = parts.purpose == "answer" or parts.is_warm
        return RequestRecord(
            id="",
            session_id=self._session_id,
            head=parts.head,
            model=parts.model,
            plan=parts.final.plan.to_json(with_sizes=False) if has_plan else None,
            settings_digest=settings_digest,
            pipeline_version=PIPELINE_VERSION,
            wire_hash=assembled.hash,
            estimated=report.token_count,
            bound=report.bound,
            created_at=self._runtime.clock(),
            totals=report.totals(),
            purpose=parts.purpose,
        )

    def _bound(self, parts: RequestParts, plain: int) -> int:
        """Return the bound of the wire form, given its `plain` bound, which has no correction."""
        if parts.correction is not None:
            return math.ceil(plain * parts.correction)
        added = plain - prompt_bound(
            parts.final.messages, tools=parts.inputs.tools_as_sent, model=parts.model, memo=self._memo
        )
        # no reply has revealed the size of a bridge or a placeholder
        return parts.final.report.bound + math.ceil(
            added * max(1.0, growth_of(parts.model, parts.inputs.config))
        )

    def _sizes(self, parts: RequestParts, sent: Sequence[bytes]) -> tuple[Sequence[int], int]:
        """Return the plain bound of each message of the wire form, and that of the tools.

        Messages that the last request had too are not counted again.
        """
        model = parts.model
        framing = prompt_bound((), model=model)
        fresh: dict[bytes, int] = {}
        for text in sent:
            key = model.encode() + b"\0" + text
            known = self._bounds.get(key)
            if known is None:
                known = prompt_bound([json.loads(text)], model=model) - framing
            fresh[key] = known
        if parts.purpose == "answer":
            self._bounds = fresh
        schemas = () if parts.inputs.text_tools else parts.inputs.tools
        tools_size = prompt_bound((), tools=schemas, model=model, memo=self._memo)
        return [fresh[model.encode() + b"\0" + text] for text in sent], tools_size
