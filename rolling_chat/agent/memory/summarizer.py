"""Make one summary, by rule or by asking a model under a budget of its own."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from rolling_chat.agent.memory.warm_summary import WarmPrompt
from rolling_chat.agent.request.builder import PlannedRequest, RequestParts, growth_of
from rolling_chat.agent.request.inputs import RequestInputs, canonical
from rolling_chat.agent.request.model_limits import context_config, knowledge_of
from rolling_chat.agent.request.plan_state import as_summary
from rolling_chat.agent.request.planner import Planner
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.spending import Spending
from rolling_chat.agent.store_queue import off_loop
from rolling_chat.agent.turn.batching import batches
from rolling_chat.agent.turn.running import TurnGate
from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    CountMemo,
    DuePass,
    Pins,
    SummaryError,
    SummaryOptions,
    build_final_prompt,
    count_tokens,
    due_pass,
    estimate_tokens,
    max_summary_tokens,
    summarize_context,
)
from rolling_chat.context.budget import window_budget
from rolling_chat.context.pins import EXCLUDED_RESULT, resolve_pins
from rolling_chat.context.summarize import MadeSummary, checked_steps, prompt_tokens, require_saving
from rolling_chat.context.summary_pass import MAX_LATER
from rolling_chat.context.summary_request import without_labels
from rolling_chat.context.tokens import Tools
from rolling_chat.messages import Ending, Message, Usage
from rolling_chat.providers import wire
from rolling_chat.providers.background_thread import in_background
from rolling_chat.providers.concurrency import answers_in_parallel, server_of
from rolling_chat.providers.protocol import Finished, ProviderError, Request
from rolling_chat.sessions.records import StoredSummary
from rolling_chat.text import normalize_text

log = logging.getLogger("rolling_chat.agent.memory.summarizer")

EXTRACT = "extract"
"""`made_by` of a summary that was extracted by rule."""

PATIENCE = 600.0
"""Seconds for a model to answer one question for a summary; a small machine reads it for minutes."""

_CLOSING = 1.0  # seconds that a turn waits at most for a question's connection to close
_ANSWER_FACTOR = 2  # room for the answer, as a multiple of the summary's limit: it may be cut and cleaned
_FRAMING = 32  # tokens around the one message of a question

_UNBOUNDED = 10**9  # tokens

_OTHER_KIND = 1.25
"""How much more a model may count for a question than its counts of the chat suggest."""


@dataclass(frozen=True, slots=True)
class SummarySource:
    """The inputs of a summary: the branch, also as planned with the system message first, and the settings.

    `newest` is the summary to extend. `model`, `chat_address` and `config` are the chat's own, and `address`
    is that of the model that makes the summary. `memo` has the counts of the branch.
    """

    planned: Sequence[Message]
    branch: Sequence[Message]
    newest: StoredSummary | None
    pins: Pins
    model: str
    config: ContextConfig
    memo: CountMemo
    address: str | None = ""
    chat_address: str | None = ""
    tools: Tools = ()
    focus: str = ""
    early: bool = False

    async def due(self) -> DuePass | None:
        """Return the range of messages that is due to be summarized; None if there is none."""
        summary = as_summary(self.newest)
        find = partial(
            due_pass, self.planned, self.config, tools=self.tools, model=self.model, memo=self.memo
        )
        return await in_background(partial(find, summary=summary, pins=self.pins, early=self.early))

    def folded_in(self, due: DuePass) -> list[Message]:
        """Return the messages to summarize, without those that the user excluded."""
        return self._included(range(due.first, due.through + 1))

    def later_than(self, due: DuePass) -> list[Message]:
        """Return the messages after those to summarize, which show what was needed again."""
        end = min(len(self.planned), due.through + 1 + MAX_LATER)
        return self._included(range(due.through + 1, end))

    def _included(self, indexes: range) -> list[Message]:
        pins = resolve_pins(self.planned, self.pins)
        return [
            replace(self.planned[index], content=EXCLUDED_RESULT)
            if index in pins.emptied
            else self.planned[index]
            for index in indexes
            if index not in pins.excluded
        ]


class Made(NamedTuple):
    """A finished summary, and why the model's answer was not accepted, if so."""

    summary: StoredSummary
    refused: str = ""


@dataclass(slots=True)
class Summarizer:
    """Makes summaries for one session; `spend` is called with the usage of every request to a model.

    A server that may have only one slot is asked only while no turn runs: `yield_to_turn` cancels its
    requests, and they are sent again after the turn.
    """

    runtime: Runtime
    planner: Planner
    spend: Callable[[Usage], None]
    gate: TurnGate
    spending: Spending
    patience: float = PATIENCE
    _yielding: set[asyncio.Timeout] = field(default_factory=set)
    _has_yielded: asyncio.Event = field(default_factory=asyncio.Event)
    _goes_cold: bool = False  # the last summary that used the chat's prompt has failed

    def yield_to_turn(self) -> None:
        """Cancel requests that would delay the turn's own; they are sent again later."""
        now = asyncio.get_running_loop().time()
        for scope in self._yielding:
            scope.reschedule(now)

    async def has_yielded(self) -> None:
        """Wait, for a short time at most, until the cancelled requests' connections are closed."""
        if not self._yielding:
            return
        self._has_yielded.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._has_yielded.wait(), _CLOSING)

    async def make(self, source: SummarySource, due: DuePass) -> Made:
        """Make a summary without publishing it.

        Raises SummaryError if it fails, and StoreError. Cancelling closes the connection.
        """
        messages = source.folded_in(due)
        before = source.newest.text if source.newest else ""
        max_tokens = max_summary_tokens(source.config.max_context_tokens)
        original = count_tokens(before, source.model)
        original += estimate_tokens(messages, source.model, memo=source.memo)
        made_by, refused = EXTRACT, ""
        if source.config.summarize == "model":
            model = source.config.summary_model or source.model
            text, refused = await self._ask_model(source, due, messages, max_tokens, model)
            made_by = EXTRACT if refused else model
        else:
            options = SummaryOptions(max_tokens=max_tokens, model=source.model, previous=before)
            later = source.later_than(due)
            summarize = partial(summarize_context, messages, options, memo=source.memo, later=later)
            text = (await in_background(summarize)).summary
            require_saving(count_tokens(text, source.model), original)
        summary = StoredSummary(
            text=text,
            through=source.planned[due.through].id,
            digest=digest_of(source.newest, source.planned[due.first : due.through + 1]),
            made_by=made_by,
            made_from=source.newest.generation if source.newest else 0,
            tokens_before=original,
            tokens_after=count_tokens(text, source.model),
            place=due.through,
            skipped=(
                *(source.newest.skipped if source.newest else ()),
                *((due.skipped,) if due.skipped else ()),
            ),
        )
        return Made(summary, refused)

    async def _ask_model(
        self,
        source: SummarySource,
        due: DuePass,
        messages: Sequence[Message],
        max_tokens: int,
        model: str,
    ) -> MadeSummary:
        """Ask a model in questions that fit its window; the last answer is the summary.

        If it is cheaper, the question is appended to the chat's own prompt, which is in the provider's cache.
        """
        if source.address is None:
            raise SummaryError(f'the address of {model} is not known: set api_base under [models."{model}"]')
        config = self._config(model, source.address, max_tokens * _ANSWER_FACTOR)
        room = window_budget(config).room - _FRAMING
        options = SummaryOptions(
            max_tokens=max_tokens,
            max_prompt_tokens=max(int(room / _correction(model, config)), 1), model=model,
            previous=source.newest.text if source.newest else "", focus=source.focus,
        )  # fmt: skip
        if warm := await self._cheaper(source, due, messages, options):
            return await self._ask_warm(source, due, warm, messages, options)
        steps = checked_steps(messages, options, source.memo, later=source.later_than(due))
        asked, made = await in_background(partial(_step, steps, None))
        while made is None:
            planned = self._plan(asked, source, model, config)
            asked, made = await in_background(partial(_step, steps, await self._ask_in_turn(planned, source)))
        return made

    async def _cheaper(
        self, source: SummarySource, due: DuePass, messages: Sequence[Message], options: SummaryOptions
    ) -> WarmPrompt | None:
        """Return the chat's own prompt if a question after it is known to cost less than one by itself."""
        goes_cold, self._goes_cold = self._goes_cold, False
        is_same_model = (options.model, source.address) == (source.model, source.chat_address)
        if goes_cold or not is_same_model or self.planner.setup.model != source.model:
            return None
        warm = WarmPrompt.of(self.planner, source.branch, due)
        if warm is None:
            return None
        generation = source.newest.generation if source.newest else 0
        price = warm.price(warm.ask(options.previous, "", options), due, generation)
        if price is None:
            return None
        tokens = await in_background(partial(prompt_tokens, messages, options, source.memo))
        other = self.planner.cache.fresh_price(tokens)
        log.info("a summary costs $%.5f behind the chat's prompt, $%s by itself", price, other)
        return warm if other is not None and price < other else None

    async def _ask_warm(
        self,
        source: SummarySource,
        due: DuePass,
        warm: WarmPrompt,
        messages: Sequence[Message],
        options: SummaryOptions,
    ) -> MadeSummary:
        """Ask after the chat's own prompt. After a failure, the next summary has a prompt of its own."""
        self._goes_cold = True
        whole = replace(options, max_prompt_tokens=_UNBOUNDED)  # the messages are in the prompt already
        steps = checked_steps(messages, whole, source.memo, warm.ask, later=source.later_than(due))
        asked, made = await in_background(partial(_step, steps, None))
        while made is None:
            question = warm.plan(asked)
            if question is None:
                why = (
                    "does not fit behind the conversation" if warm.is_current else "would go to another model"
                )
                raise SummaryError(f"the question {why}")
            answer = await self._ask_in_turn(question, source)
            if warm.is_current:
                self.planner.cache.refresh(question.record.created_at)
            asked, made = await in_background(partial(_step, steps, answer))
        self._goes_cold = bool(made.refused)
        return made

    def _config(self, model: str, address: str | None, answer: int) -> ContextConfig:
        """Return the summarizer's own configuration: rolling off, no tools, `answer` tokens for an answer."""
        runtime = self.runtime
        known = knowledge_of(model, address or "", runtime.store)
        config = context_config(
            model, runtime.settings, runtime.catalog, rolling=False, system="", tools=(),
            learned=known.learned, served=runtime.server_facts.window(model, address),
            calibration=known.measurements.calibration,
        )  # fmt: skip
        return replace(config, reserved_output_tokens=min(window_budget(config).reserve, answer))

    def _plan(self, asked: str, source: SummarySource, model: str, config: ContextConfig) -> PlannedRequest:
        """Plan the request for a question. Raises SummaryError if it does not fit."""
        try:
            final = build_final_prompt([Message("user", asked)], config, model=model)
        except ContextOverflowError as error:
            raise SummaryError(f"a question to {model} does not fit its window: {error}") from error
        planned = self.planner.builder.build(
            RequestParts(
                final, RequestInputs(config, "", ()), model, source.address,
                config.max_context_tokens,
                head=source.planned[-1].id, purpose="summary", correction=_correction(model, config),
                question=asked,
            )
        )  # fmt: skip
        if not planned.report.within_budget:
            raise SummaryError(f"a question to {model} does not fit its window as it is sent")
        return replace(planned, request=replace(planned.request, max_tokens=planned.report.reserve))

    async def _ask_in_turn(self, question: PlannedRequest, source: SummarySource) -> str:
        """Return the answer to a question, which is asked again after every turn that it yields to."""
        while self._must_yield(question.request.model, source):
            await self.gate.idle.wait()
            try:
                async with asyncio.timeout(None) as scope:
                    self._yielding.add(scope)
                    return await self._ask(question)
            except TimeoutError:
                log.info("session %s: the summary yields to a turn", question.record.session_id)
            finally:
                self._yielding.discard(scope)
                self._has_yielded.set()
        return await self._ask(question)

    def _must_yield(self, model: str, source: SummarySource) -> bool:
        """Return whether a question to `model` could delay the chat's own requests."""
        server = server_of(model, source.address)
        return server == server_of(source.model, source.chat_address) and not answers_in_parallel(server)

    async def _ask(self, question: PlannedRequest) -> str:
        """Return the answer to a question; if the model only got to think, ask again with more room."""
        answer = await self._answer(question)
        if answer.ending is Ending.LENGTH and not without_labels(answer.text):
            answer = await self._answer(_with_more_room(question))
        return answer.text

    async def _answer(self, question: PlannedRequest) -> Message:
        """Send a question once and return the answer, completing its record in the store in any case."""
        store, usage, error = self.runtime.store, Usage(), "cancelled"
        if limit := await off_loop(store, partial(self.spending.forbids, question)):
            raise SummaryError(f"its cost might pass {limit}")
        started = time.monotonic()
        record_id = await off_loop(store, partial(store.log_request, question.record, question.inputs))
        try:
            async with asyncio.timeout(self.patience):
                answer = await self._finished(question.request)
            usage, error = answer.usage, ""
            self.spend(usage)
            if answer.message.tool_calls:
                error = f"{question.request.model} called a tool instead of writing a summary"
                raise SummaryError(error)
            return replace(answer.message, content=normalize_text(answer.message.text))
        except TimeoutError:
            error = f"no answer within {self.patience:g} seconds"
            raise SummaryError(f"{question.request.model} gave {error}") from None
        except ProviderError as failure:
            error = str(failure)
            log.warning("no summary (%s): %s %s", failure.kind.value, failure, failure.detail)
            raise SummaryError(error) from failure
        finally:
            seconds = time.monotonic() - started
            finish = partial(store.finish_request, record_id, usage=usage, seconds=seconds, error=error)
            await off_loop(store, finish)

    async def _finished(self, request: Request) -> Finished:
        async with aclosing(batches(self.runtime.provider.stream(request))) as stream:
            async for batch in stream:
                for delta in batch:
                    if isinstance(delta, Finished):
                        return delta
        raise SummaryError(f"the answer of {request.model} broke off")


def _with_more_room(question: PlannedRequest) -> PlannedRequest:
    """Return the question with the longest answer that fits, for a model that thinks before it answers."""
    max_tokens = question.answer_room if wire.requires_max_tokens(question.request.model) else None
    return replace(question, request=replace(question.request, max_tokens=max_tokens))


def _correction(model: str, config: ContextConfig) -> float:
    """Return the factor for a plain upper bound, from what the model's replies have revealed.

    They are about the chat's messages, and a question for a summary is another kind of text.
    """
    correction = growth_of(model, config)
    return correction * _OTHER_KIND if correction > 1.0 else 1.0


def digest_of(newest: StoredSummary | None, messages: Sequence[Message]) -> str:
    """Return the digest of everything that a summary covers: the previous digest and `messages`."""
    hashed = hashlib.sha256((newest.digest if newest else "").encode())
    for message in messages:
        hashed.update(canonical([message.id, message.to_dict()]) + b"\n")
    return hashed.hexdigest()


def _step(steps: Generator[str, str, MadeSummary], answer: str | None) -> tuple[str, MadeSummary | None]:
    """Return the next question and None, or an empty question and the finished summary."""
    try:
        return (next(steps) if answer is None else steps.send(answer)), None
    except StopIteration as end:
        return "", end.value
