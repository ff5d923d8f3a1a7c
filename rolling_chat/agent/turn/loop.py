"""The agent loop: send the prompt, stream the reply, run its tool calls; repeat until the model answers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial

from rolling_chat.agent.conversation import Conversation
from rolling_chat.agent.errors import ChatError
from rolling_chat.agent.hooks.session_hooks import SessionHooks
from rolling_chat.agent.permissions import written_calls_line
from rolling_chat.agent.plan_mode import PlanMode
from rolling_chat.agent.request.builder import PlannedRequest, ToolChoice
from rolling_chat.agent.request.cache_misses import CacheMiss
from rolling_chat.agent.request.planner import Planner
from rolling_chat.agent.spending import Spending, SpendingLimitError
from rolling_chat.agent.turn.attaching import Attaching
from rolling_chat.agent.turn.fallbacks import Fallbacks
from rolling_chat.agent.turn.overflow import OverflowAdvice, is_near_limit, read_refusal
from rolling_chat.agent.turn.reply import Reply
from rolling_chat.agent.turn.room_notice import RoomNotice
from rolling_chat.agent.turn.tool_calls import CallRunner
from rolling_chat.agent.turn.waiting import WaitingMessages
from rolling_chat.context import ContextOverflowError
from rolling_chat.events import (
    Emit,
    Noticed,
    Outcome,
    PromptPlanned,
    ReplyEnded,
    Steered,
    ToolEnded,
    TurnEnded,
)
from rolling_chat.messages import Ending, Message, Usage
from rolling_chat.providers.protocol import ErrorKind, Provider, ProviderError
from rolling_chat.sessions.records import StoreError
from rolling_chat.text import one_line

log = logging.getLogger("rolling_chat.agent.turn.loop")

_OUTCOMES = {ErrorKind.TOO_LONG: Outcome.FULL, ErrorKind.INTERRUPTED: Outcome.BROKEN}

_MISPLACED = (
    "[not run: calls count only at the very end of a reply. Send them again there, with nothing after them]"
)
_MAX_MISPLACED = 2  # replies with misplaced calls that a turn may have

RESENDS = 2
"""How often a request that was refused for length is planned and sent again."""


@dataclass(frozen=True, slots=True)
class SettledTurn:
    """The end of a turn: events that close what was still open, and the TurnEnded that follows."""

    settled: tuple[ReplyEnded | ToolEnded, ...]
    ended: TurnEnded


@dataclass(slots=True)
class AgentLoop:
    """Runs one turn, from a conversation that ends with a message for the model to answer.

    `ready` is awaited before anything is planned. `plan` plans a request, with a limit for its upper bound in
    tokens, or 0. `run` emits events and never raises. When it returns, nothing is left open: a reply that was
    cut off is sealed and marked, one that never got a byte is dropped, and every call has a result.
    """

    conversation: Conversation
    planner: Planner
    plan: Callable[[ToolChoice, int], Awaitable[PlannedRequest]]
    provider: Provider
    calls: CallRunner
    emit: Emit
    ready: Callable[[], Awaitable[None]]
    max_iterations: int
    waiting: WaitingMessages
    attaching: Attaching
    spending: Spending
    fallbacks: Fallbacks
    plan_mode: PlanMode
    hooks: SessionHooks
    log_file: str = ""
    room: RoomNotice | None = None
    misses: list[CacheMiss] = field(default_factory=list)
    _usage: Usage = field(default_factory=Usage)
    _reply: Reply | None = None
    _has_reported_reserve: bool = False  # that little room is left for the answer
    _misplaced: int = 0  # replies of this turn whose calls were followed by something else
    _was_continued: bool = False  # by a Stop hook
    _has_assumed_length: bool = False  # a refusal without a reason was treated as one for length

    @property
    def usage(self) -> Usage:
        """The usage that providers reported for this turn so far, including its tasks."""
        return self._usage + self.calls.usage

    async def run(self) -> SettledTurn:
        """Run the turn. Cancelling its task stops it and leaves a well-formed conversation."""
        started = time.monotonic()
        error = ""
        try:
            outcome = await self._iterate()
        except asyncio.CancelledError:
            outcome = Outcome.CANCELLED
        except Exception as failure:
            outcome, error = self._explain(failure)
        except BaseException:  # the process is being ended
            self._settle(Outcome.CANCELLED, [])
            raise
        settled: list[ReplyEnded | ToolEnded] = []
        try:
            await self.conversation.queue.settle(partial(self._end, outcome, settled))
        except StoreError as failure:
            log.exception("the turn could not be settled")
            outcome, error = Outcome.FAILED, str(failure)
        missed = tuple((miss.cause.value, miss.tokens) for miss in self.misses)
        ended = TurnEnded(outcome, self.usage, time.monotonic() - started, error, missed)
        return SettledTurn(tuple(settled), ended)

    async def _iterate(self) -> Outcome:
        await self._begin()
        for iteration in itertools.count(1):
            limit = self._limit(iteration)
            if limit:
                await self.emit(Noticed(f"{limit}; now it has to answer without them.", warning=True))
            message = await self._ask(iteration, "none" if limit else "auto")
            is_cut = message.ending is Ending.LENGTH
            if not message.tool_calls:
                if not is_cut and not limit and await self._must_continue(message):
                    continue
                return Outcome.CUT if is_cut else Outcome.DONE
            if limit:
                why = "limit of calls" if self.calls.is_spent else "no more tools in this turn"
                await self.calls.refuse(f"[not run: {why}]")
                return Outcome.DONE
            if message.writes_calls:
                await self._announce_written_calls()
            if self._reply is not None and self._reply.is_misplaced:
                await self.calls.refuse(_MISPLACED)
                self._misplaced += 1
                if self._misplaced > _MAX_MISPLACED:
                    return Outcome.DONE
                await self._append_waiting()
                continue
            note = self._reply.note if self._reply is not None else ""
            await self.calls.answer_all(message, cut=is_cut, note=note)
            if self.calls.stopped_by:
                line = f"A hook ended the turn: {one_line(self.calls.stopped_by, 300)}"
                await self.emit(Noticed(line, warning=True))
                return Outcome.DONE
            await self._append_waiting()
        raise AssertionError  # the count never ends

    async def _begin(self) -> None:
        """Wait until a request can be planned, then use the tools that are offered."""
        await self.ready()
        setup = self.planner.setup
        self.calls.tools, self.calls.trusts_text = setup.tools, setup.tool_calls == "text"

    async def _append_waiting(self) -> None:
        """Append the messages that the user wrote meanwhile, after the results of all calls."""
        while (waiting := self.waiting.next_in_turn) is not None:
            try:
                outgoing = await self.attaching.outgoing(waiting.text)
                ruling = await self.hooks.before_message(outgoing.text)
            except ChatError as error:
                self.waiting.postpone(waiting)
                await self.emit(Noticed(str(error), warning=True))
                continue
            if waiting not in self.waiting:  # withdrawn while the user was asked about a file
                continue
            note = "\n\n".join(filter(None, (self.plan_mode.note, ruling.context)))
            add = partial(
                self.conversation.add_user, outgoing.text, note, outgoing.attachments, outgoing.files,
                in_turn=True,
            )  # fmt: skip
            said = await self.conversation.queue.run(add)
            self.waiting.remove(waiting)
            await self.emit(Steered(said))
            for line in (*ruling.lines, *outgoing.notices):
                await self.emit(Noticed(line, warning=True))

    async def _must_continue(self, answer: Message) -> bool:
        """Ask the Stop hooks whether the turn may end; one may make the model continue, once per turn."""
        ruling = await self.hooks.before_stop(answer.text, is_sent_on=self._was_continued)
        for line in ruling.lines:
            await self.emit(Noticed(line, warning=True))
        if not ruling.refuses or ruling.stops:
            return False
        why = one_line(ruling.reason, 300)
        if self._was_continued:
            await self.emit(Noticed(f"A Stop hook refused again, but the turn ends anyway: {why}"))
            return False
        self._was_continued = True
        await self.emit(Noticed(f"A Stop hook makes the model continue: {why}"))
        add = partial(self.conversation.add_user, f"[from a Stop hook] {ruling.reason}", in_turn=True)
        await self.emit(Steered(await self.conversation.queue.run(add)))
        return True

    async def _announce_written_calls(self) -> None:
        """Explain, once per session, why even calls of tools that only read need approval."""
        setup = self.planner.setup
        if setup.tool_calls == "text" or self.calls.permissions.knows_written_calls:
            return
        self.calls.permissions.knows_written_calls = True
        can_ask = self.calls.permissions.listener.ask is not None
        await self.emit(Noticed(written_calls_line(setup.model, can_ask=can_ask)))

    def _limit(self, iteration: int) -> str:
        """Return which limit of tool use is reached; empty if none is."""
        if iteration > self.max_iterations:
            return f"The model called tools {self.max_iterations} times over (agent.max_tool_iterations)"
        if self.calls.is_spent:
            return f"The model made {self.calls.max_calls:,} calls (agent.max_tool_calls)"
        return ""

    async def _ask(self, iteration: int, tool_choice: ToolChoice) -> Message:
        """Return the reply, from a fallback model while the session's own is down."""
        self.fallbacks.begin_request()
        while True:
            self._reply = None
            try:
                message = await self._ask_model(iteration, tool_choice)
            except (ProviderError, ContextOverflowError) as error:
                if self._has_begun:
                    self.fallbacks.answered()
                    raise
                if not await self._fall_back(error):
                    raise
                continue
            if line := self.fallbacks.answered():
                await self.emit(Noticed(line))
            return message

    @property
    def _has_begun(self) -> bool:
        """Whether any part of the reply to the current request has arrived."""
        return self._reply is not None and self._reply.has_begun

    async def _fall_back(self, error: ProviderError | ContextOverflowError) -> bool:
        """Continue with a fallback model after an outage, if any; return whether there is one.

        Everything that the turn has done is kept.
        """
        setup = self.planner.setup
        before = setup.model
        if not await self.conversation.queue.run(partial(self.fallbacks.take_over, error)):
            return False
        log.warning("%s failed, %s answers instead: %s", before, setup.model, error)
        if self._reply is not None:
            await self.conversation.queue.run(partial(self._reply.end, Ending.FAILED))
        await self._begin()
        await self.emit(Noticed(self.fallbacks.describe(before), warning=True))
        return True

    async def _ask_model(self, iteration: int, tool_choice: ToolChoice) -> Message:
        """Return the reply; a request refused for length is planned and sent again, at most twice."""
        advice, refused = OverflowAdvice(), 0
        for attempt in itertools.count():
            await self.planner.counts.count_long(self.conversation.recent, self.planner.setup.model)
            planned = await self._plan_below(advice.input_limit, refused, tool_choice)
            if self.room is not None:
                self.room.take(planned.report)
            if planned.report.trimmed:
                for line in await self.hooks.before_compact("auto"):
                    await self.emit(Noticed(line))
            await self.emit(PromptPlanned(planned.report))
            await self._report_reserve(planned.report.reduced_reserve)
            if line := await self.spending.check(planned):
                await self.emit(Noticed(line, warning=True))
            try:
                return await self._request(planned, iteration)
            except ProviderError as error:
                refusal = self._as_refusal(error, planned)
                if refusal is None:
                    raise
                advice = read_refusal(refusal, planned)
                self.planner.setup.note_try()
                await self.conversation.read_rest()  # the counts of any part of it may be wrong
                queue = self.conversation.queue
                if self.planner.feedback.learn_refusal(planned, advice.counted, self.conversation.messages):
                    advice = advice.without_counts()
                    await queue.run(self.conversation.save_counts)
                if advice.learned is not None:
                    self.planner.setup.learn(advice.learned)
                await queue.run(self.planner.setup.keep_knowledge)
                refused = planned.report.bound
                if attempt == RESENDS or not await self._may_resend(advice, refused, tool_choice):
                    raise refusal from error
                if self._reply is not None:
                    await self.conversation.queue.run(partial(self._reply.end, Ending.FAILED))
                await self.emit(Noticed(advice.line))
        raise AssertionError  # the count never ends

    async def _report_reserve(self, reduced: int) -> None:
        """Tell the user, once per turn, that little room is left for the answer."""
        if not reduced or self._has_reported_reserve:
            return
        self._has_reported_reserve = True
        line = f"The window is nearly full: some {reduced:,} tokens are left for the answer."
        await self.emit(Noticed(line))

    def _as_refusal(self, error: ProviderError, planned: PlannedRequest) -> ProviderError | None:
        """Return `error` as a refusal for length, if it is or may well be one; otherwise None."""
        if self._has_begun:
            return None
        if error.kind is ErrorKind.TOO_LONG:
            return error
        is_unexplained = error.kind is ErrorKind.BAD_REQUEST and is_near_limit(planned)
        if self._has_assumed_length or not is_unexplained:
            return None
        self._has_assumed_length = True
        return ProviderError(ErrorKind.TOO_LONG, str(error), detail=error.detail)

    async def _plan_below(self, limit: int, refused: int, tool_choice: ToolChoice) -> PlannedRequest:
        """Plan a request of at most `limit` tokens, or the smallest possible if it is below `refused`.

        Raises ContextOverflowError.
        """
        try:
            return await self.plan(tool_choice, limit)
        except ContextOverflowError as error:
            if not limit or error.current >= refused:
                raise
            smallest = error.current
        return await self.plan(tool_choice, smallest)

    async def _may_resend(self, advice: OverflowAdvice, refused: int, tool_choice: ToolChoice) -> bool:
        """Return whether less can be sent; with rolling off, only the answer can be made shorter."""
        if self.planner.setup.rolling and not advice.input_limit:
            return True
        if advice.input_limit and not self.planner.setup.rolling:
            return False
        try:
            await self._plan_below(advice.input_limit, refused, tool_choice)
        except ContextOverflowError:
            return False
        return True

    async def _request(self, planned: PlannedRequest, iteration: int) -> Message:
        """Send one request; its record in the store is completed whatever happens."""
        reply = self._reply = Reply(
            self.conversation, self.provider, replace(planned.request, patience=self.fallbacks.patience),
            planned.made_by, iteration, self.emit, self.planner.setup.tool_calls != "native",
        )  # fmt: skip
        queue = self.conversation.queue
        record_id = await queue.run(partial(self.planner.record, planned))
        started, error = time.monotonic(), "cancelled"
        try:
            message = await reply.receive()
            await self.planner.counts.count_long(self.conversation.recent, self.planner.setup.model)
            error = ""
        except Exception as failure:
            error = str(failure) or type(failure).__name__
            raise
        finally:
            self._usage += reply.usage
            seconds = time.monotonic() - started
            miss = await queue.run(
                partial(self.planner.finish, record_id, planned, reply.usage, seconds, error)
            )
            self.spending.settle()
            if miss is not None:
                self.misses.append(miss)
        if not reply.was_retried:  # some servers report the sum of all attempts
            self.planner.feedback.learn_answer(reply.usage, message, self.conversation.branch)
        return message

    def _end(self, outcome: Outcome, settled: list[ReplyEnded | ToolEnded]) -> None:
        """Close everything that is open, and store the counts and what the turn revealed about the model."""
        self._settle(outcome, settled)
        with contextlib.suppress(StoreError):  # the next turn stores it
            self.conversation.save_counts()
            self.planner.setup.keep_knowledge()

    def _settle(self, outcome: Outcome, settled: list[ReplyEnded | ToolEnded]) -> None:
        """Close the open reply and the open calls."""
        failed = outcome in {Outcome.FAILED, Outcome.BROKEN}
        ending = Ending.FAILED if failed else Ending.CANCELLED
        reply_ended = self._reply.end(ending) if self._reply is not None else None
        if reply_ended is not None:
            settled.append(reply_ended)
        text = "[not run: the program failed]" if failed else "[cancelled: not run]"
        settled.extend(self.calls.refuse_rest(text, ending))

    def _explain(self, error: Exception) -> tuple[Outcome, str]:
        """Return the outcome of a turn that failed, and one line for the user."""
        match error:
            case ContextOverflowError():
                return Outcome.FULL, str(error)
            case SpendingLimitError():
                return Outcome.FAILED, str(error)
            case ProviderError(kind=kind):
                log.warning("request failed (%s): %s %s", kind.value, error, error.detail)
                return _OUTCOMES.get(kind, Outcome.FAILED), str(error)
            case StoreError():
                log.error("the store failed", exc_info=error)
                return Outcome.FAILED, str(error)
            case _:
                log.error("the turn broke", exc_info=error)
                where = f"; details in {self.log_file}" if self.log_file else ""
                return (
                    Outcome.FAILED,
                    f"The turn broke on a fault of the program ({type(error).__name__}){where}",
                )
