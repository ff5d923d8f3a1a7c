"""From settings, catalogue and conversation to a request that is proved to fit, and its record."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from rolling_chat.agent.conversation import Conversation
from rolling_chat.agent.instructions import MAX_BYTES, read_instructions, system_prompt
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.window import context_config, offers_tools, output_limit, window_of
from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    PromptReport,
    build_final_prompt,
    prompt_bound,
)
from rolling_chat.messages import Json, JsonObject, MadeBy, Message, Usage
from rolling_chat.providers import wire
from rolling_chat.providers.protocol import Request
from rolling_chat.sessions.records import RequestRecord
from rolling_chat.tools import Tool

PIPELINE_VERSION = 1
"""Grows when the same conversation, settings and plan would make another prompt."""

MAX_ANSWER = 32_000
"""The most that is ever asked for as `max_tokens`."""

_CACHE_SECONDS = 300.0
"""How long providers keep a prompt in their cache after it was last used."""

_WIRE_ATTEMPTS = 3  # plans that are tried when the wire form comes out longer than what was planned


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """A request that fits, its report, and the record of it that goes to the store."""

    request: Request
    report: PromptReport
    made_by: MadeBy
    record: RequestRecord


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
    ) -> None:
        self._runtime = runtime
        self._session_id = session_id
        self._started_at = started_at
        self._all_tools = tuple(tools)
        self._plan: ContextPlan | None = None
        self._planned_at = 0.0
        self._previous_length = 0
        self._wire_bounds: dict[bytes, int] = {}
        self.model = model
        self.rolling = rolling
        self.instructions = ""
        self.read_instructions()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that the model is offered: none where it is known to take none."""
        return self._all_tools if offers_tools(self.model, self._runtime.catalog) else ()

    @property
    def config(self) -> ContextConfig:
        """The pipeline's configuration for the next request."""
        return context_config(
            self.model, self._runtime.settings, self._runtime.catalog,
            rolling=self.rolling, system=self._system(), tools=self._schemas(),
        )  # fmt: skip

    def read_instructions(self) -> None:
        """Read AGENTS.md again: done once a turn, so that the prompt stands still within it."""
        window = window_of(self.model, self._runtime.settings, self._runtime.catalog)
        # As many bytes as the window has tokens are about a quarter of it.
        self.instructions = read_instructions(self._runtime.folder, min(MAX_BYTES, window))

    def use_model(self, model: str) -> None:
        """Plan for another model from now on; its provider has nothing cached."""
        self.model = model
        self._previous_length = 0
        self.read_instructions()

    def load_plan(self, plan: Json) -> None:
        """Take up the decisions that the session was left with."""
        self._plan = ContextPlan.from_json(plan) if isinstance(plan, dict) else None
        self._planned_at = 0.0

    def preview(self, messages: Sequence[Message]) -> PromptReport:
        """The report of the next request, also of one that does not fit."""
        try:
            return build_final_prompt(
                self._prompt(messages), self.config, tools=self._schemas(), model=self.model, plan=self._plan
            ).report
        except ContextOverflowError as error:
            return error.report

    def plan(
        self, conversation: Conversation, *, tool_choice: Literal["auto", "none"] = "auto"
    ) -> PlannedRequest:
        """The next request, counted on the form in which it is sent. Raises ContextOverflowError."""
        self._notice_idleness()
        branch = conversation.messages
        config = self.config
        room = _room(config)
        for _ in range(_WIRE_ATTEMPTS):
            planned, added = self._attempt(branch, config, tool_choice)
            if planned.report.within_budget:
                break
            # The wire copy adds a little of its own: leave that much room for it, and plan again.
            config = replace(config, input_limit=max(room - added, 1))
        else:
            raise _does_not_fit(planned.report)
        conversation.save_counts()
        self._previous_length = len(planned.request.messages)
        return planned

    def _notice_idleness(self) -> None:
        """Tell the plan when the provider has forgotten the prompt: a trim costs nothing then."""
        now = self._runtime.clock()
        if self._plan is not None and now - self._planned_at > _CACHE_SECONDS:
            self._plan = self._plan.cold()
        self._planned_at = now

    def record(self, planned: PlannedRequest) -> str:
        """Write the request to the log before it is sent; returns the record's id."""
        self._runtime.store.update_session(self._session_id, plan=planned.record.plan)
        return self._runtime.store.log_request(planned.record)

    def finish(self, record_id: str, usage: Usage, seconds: float, error: str) -> None:
        """Complete the record with what came back."""
        self._runtime.store.finish_request(record_id, usage=usage, seconds=seconds, error=error)

    def _attempt(
        self, branch: Sequence[Message], config: ContextConfig, tool_choice: Literal["auto", "none"]
    ) -> tuple[PlannedRequest, int]:
        """One plan, and how many tokens its wire form is longer than what was planned."""
        schemas = self._schemas()
        final = build_final_prompt(
            self._prompt(branch), config, tools=schemas, model=self.model, plan=self._plan
        )
        request = self._request(tuple(final.messages), tool_choice, config.max_context_tokens)
        sent = [_canonical(message) for message in self._runtime.provider.wire_form(request)]
        bound = self._bound(sent)
        room, reserve = _room(config), _reserve(config)
        report = replace(final.report, bound=bound, reserve=reserve, within_budget=bound <= room)
        request = replace(request, max_tokens=self._max_tokens(bound, config.max_context_tokens))
        self._plan = final.plan
        record = RequestRecord(
            id="",
            session_id=self._session_id,
            head=branch[-1].id if branch else "",
            model=self.model,
            plan=final.plan.to_json(),
            settings_digest=_digest(asdict(config) | {"tools": dict(config.tools)}),
            pipeline_version=PIPELINE_VERSION,
            wire_hash=_wire_hash(sent, schemas),
            estimated=report.token_count,
            bound=bound,
            created_at=self._runtime.clock(),
            totals=report.totals(),
        )
        return PlannedRequest(request, report, wire.made_by(self.model), record), bound - final.report.bound

    def _request(
        self, messages: tuple[Message, ...], tool_choice: Literal["auto", "none"], window: int
    ) -> Request:
        return Request(
            model=self.model,
            messages=messages,
            tools=tuple(self._schemas()),
            tool_choice=tool_choice,
            window=window,
            session_id=self._session_id,
            api_base=self._runtime.settings.for_model(self.model).api_base or None,
            previous_length=self._previous_length,
            stable_system_chars=len(self._system()),
        )

    def _max_tokens(self, bound: int, window: int) -> int | None:
        """Sent where the provider needs it, or the person set it; never beyond what is left."""
        configured = self._runtime.settings.for_model(self.model).max_output_tokens
        if not configured and not wire.wants_max_tokens(self.model):
            return None
        limit = output_limit(self.model, self._runtime.settings, self._runtime.catalog) or MAX_ANSWER
        return max(min(limit, MAX_ANSWER, window - bound), 1)

    def _bound(self, sent: Sequence[bytes]) -> int:
        """The upper bound of the wire form; a message that was counted for the last request is not again."""
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

    def _prompt(self, branch: Sequence[Message]) -> list[Message]:
        return [Message("system", self._system()), *wire.for_model(branch, self.model)]

    def _system(self) -> str:
        return system_prompt(self._runtime.folder, self._started_at, self.tools, self.instructions)

    def _schemas(self) -> list[dict[str, Json]]:
        return [tool.schema for tool in self.tools]


def _room(config: ContextConfig) -> int:
    """W - R - M, as the pipeline divides the window."""
    window = config.max_context_tokens
    return window - _reserve(config) - int(window * config.safety_margin)


def _reserve(config: ContextConfig) -> int:
    """R, without what an input limit adds to it."""
    window = config.max_context_tokens
    return min(config.reserved_output_tokens, window // 3, config.max_output_tokens or window)


def _does_not_fit(report: PromptReport) -> ContextOverflowError:
    room = report.window - report.reserve - report.margin
    share = 1 - (report.reserve + report.margin) / report.window
    return ContextOverflowError(
        current=report.bound,
        maximum=room,
        largest=[("history", report.history), ("current turn", report.current), ("system", report.system)],
        smallest_window=math.ceil(report.bound / share) if share > 0 else report.bound,
        report=report,
    )


def _wire_hash(sent: Sequence[bytes], tools: Sequence[JsonObject]) -> str:
    digest = hashlib.sha256()
    for text in sent:
        digest.update(text + b"\n")
    digest.update(_canonical(tools))
    return digest.hexdigest()


def _digest(value: Json) -> str:
    return hashlib.sha256(_canonical(value)).hexdigest()[:16]


def _canonical(value: Json) -> bytes:
    """JSON with one spelling for one value."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str).encode()
