"""Rebuild a request that was sent, from the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from rolling_chat.agent.request.builder import assemble, prefix_of
from rolling_chat.agent.request.cache_misses import PromptPrefix
from rolling_chat.agent.request.counting import SessionCounts
from rolling_chat.agent.request.inputs import RequestInputs
from rolling_chat.context import (
    ContextOverflowError,
    ContextPlan,
    PromptReport,
)
from rolling_chat.context.budget import window_budget
from rolling_chat.context.prompt import rebuild_final_prompt
from rolling_chat.messages import JsonObject, Message
from rolling_chat.providers import wire
from rolling_chat.providers.protocol import Request
from rolling_chat.sessions.records import RequestRecord, StoreError
from rolling_chat.sessions.store import SessionStore


@dataclass(frozen=True, slots=True)
class RebuiltRequest:
    """A rebuilt request: its record, a report with a row for every message, and the messages.

    `wire_hash` is that of the rebuilt wire form. `prefix` lacks sizes, tool choice and effort, which are not
    stored.
    """

    record: RequestRecord
    report: PromptReport
    messages: tuple[Message, ...]
    wire_hash: str
    prefix: PromptPrefix

    @property
    def is_same(self) -> bool:
        """Whether the rebuilt request equals the one that was sent, byte for byte."""
        return self.wire_hash == self.record.wire_hash


def rebuild_request(store: SessionStore, record: RequestRecord) -> RebuiltRequest:
    """Rebuild the request of `record` from its branch, its plan and its stored inputs.

    Current settings, tools and instruction files have no effect. Raises StoreError if the inputs are missing
    or no longer make a valid request.
    """
    stored = store.basis(record.settings_digest)
    if stored is None:
        raise StoreError(
            f"request {record.short} cannot be built again: the version that sent it did not keep "
            "what it was made from"
        )
    try:
        inputs, counts = RequestInputs.from_json(stored), SessionCounts()
        final = rebuild_final_prompt(
            _planned(store, record, inputs, stored, counts),
            inputs.config,
            tools=inputs.tools_as_sent,
            model=record.model,
            plan=ContextPlan.from_json(record.plan),
            memo=counts.memo,
        )
    except (ContextOverflowError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"request {record.short} cannot be built again: {error}") from error
    tools = tuple(dict(tool) for tool in inputs.tools)
    request = Request(record.model, tuple(final.messages), tools, text_tools=inputs.text_tools)
    sent = assemble(request, partial(wire.to_wire, marks=False))
    report = _as_reported(final.report, record, inputs)
    return RebuiltRequest(record, report, request.messages, sent.hash, prefix_of(sent, inputs))


def newest_inputs(store: SessionStore, session_id: str) -> RequestInputs | None:
    """Return the inputs of a session's newest request for an answer; None if none are stored."""
    answers = (record for record in reversed(store.requests(session_id)) if record.purpose == "answer")
    for record in answers:
        stored = store.basis(record.settings_digest)
        return None if stored is None else RequestInputs.from_json(stored)
    return None


def _planned(
    store: SessionStore,
    record: RequestRecord,
    inputs: RequestInputs,
    stored: JsonObject,
    counts: SessionCounts,
) -> Sequence[Message]:
    """Return the messages that were planned: the branch, the question for a summary, or both.

    A question with a plan followed the branch. The counts of the branch are loaded into `counts`.
    """
    question = [Message("user", stored["question"])] if record.purpose == "summary" else []
    if question and record.plan is None:
        return question
    if not record.head:
        return inputs.prompt([], record.model)
    branch = store.stretch(record.session_id, None, record.head)
    counts.load(branch.messages, branch.counts)
    return inputs.prompt([*branch.messages, *question], record.model)


def _as_reported(report: PromptReport, record: RequestRecord, inputs: RequestInputs) -> PromptReport:
    """Return the report as it was when the request was sent, with the sizes of its record.

    Replies may have revealed other sizes since.
    """
    sizes = record.totals.get("categories", {})
    return replace(
        report,
        system=sizes.get("system", report.system),
        tools=sizes.get("tools", report.tools),
        summary=sizes.get("summary", report.summary),
        history=sizes.get("history", report.history),
        current=sizes.get("current", report.current),
        margin=sizes.get("margin", report.margin),
        bound=record.bound,
        unproven=record.totals.get("unproven", 0),
        reserve=window_budget(inputs.config).reserve,
        history_budget=record.totals.get("history_budget", report.history_budget),
        trim_at=record.totals.get("trim_at", report.trim_at),
        floor=record.totals.get("floor", report.floor),
        exact=record.totals.get("confirmed", False),
        below=record.totals.get("below", 0),
        above=record.totals.get("above", 0),
        within_budget=True,
    )
