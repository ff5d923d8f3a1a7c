"""The agent loop: prompt, stream, tools, again, until the model has answered."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

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
_MAX_MISPLACED = 2  # times a turn that the model is told so

RESENDS = 2
"""How often a request that was refused as too long is planned and sent again."""


@dataclass(frozen=True, slots=True)
class SettledTurn:
    """The end of a turn: events for what was still open, and the TurnEnded that follows them."""

    settled: tuple[ReplyEnded | ToolEnded, ...]
    ended: TurnEnded


@dataclass(slots=True)
class AgentLoop:
    """Runs one turn, from a conversation that ends with what the model has to answer.

    `ready` is awaited before anything is planned; `plan` plans a request whose upper bound is at most
    so many tokens, 0 for no such bound. `run` emits what happens and never raises: when it returns, nothing
    is open any more. A reply that was cut off is sealed and marked, one that never got a byte is dropped,
    and every call has its answer.
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
    _told_reserve: bool = False  # that the reserve for the answer gave way was said in this turn
    _misplaced: int = 0  # replies of this turn with calls that something followed
    _sent_on: bool = False  # by a Stop hook
    _doubted: bool = False  # a refusal without a reason was taken for one of length in this turn

    @property
    def usage(self) -> Usage:
        """The usage that providers reported for this turn so far, with that of its tasks."""
        return self._usage + self.calls.usage

    async def run(self) -> SettledTurn:
        """Run the turn. Cancelling the task is the user's stop: it leaves a well-formed conversation."""
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
            self._settle(outcome, settled)
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
                if not is_cut and not limit and await self._is_sent_on(message):
                    continue
                return Outcome.CUT if is_cut else Outcome.DONE
            if limit:
                why = "limit of calls" if self.calls.is_spent else "no more tools in this turn"
                for ended in self.calls.refuse_rest(f"[not run: {why}]", Ending.REFUSED):
                    await self.emit(ended)
                return Outcome.DONE
            if message.writes_calls:
                await self._announce_written_calls()
            if self._reply is not None and self._reply.is_misplaced:
                for ended in self.calls.refuse_rest(_MISPLACED, Ending.REFUSED):
                    await self.emit(ended)
                self._misplaced += 1
                if self._misplaced > _MAX_MISPLACED:
                    return Outcome.DONE
                await self._take_waiting()
                continue
            note = self._reply.note if self._reply is not None else ""
            await self.calls.answer_all(message, cut=is_cut, note=note)
            if self.calls.stopped_by:
                line = f"A hook ended the turn: {one_line(self.calls.stopped_by, 300)}"
                await self.emit(Noticed(line, warning=True))
                return Outcome.DONE
            await self._take_waiting()
        raise AssertionError  # the count never ends

    async def _begin(self) -> None:
        """Wait until a request can be planned, and take the tools that are offered then."""
        await self.ready()
        setup = self.planner.setup
        self.calls.tools, self.calls.trusts_text = setup.tools, setup.tool_calls == "text"

    async def _take_waiting(self) -> None:
        """Append what the user wrote meanwhile, below the results of all open calls."""
        while (waiting := self.waiting.next_in_turn) is not None:
            try:
                outgoing = await self.attaching.outgoing(waiting.text)
                ruling = await self.hooks.before_message(outgoing.text)
            except ChatError as error:
                self.waiting.postpone(waiting)
                await self.emit(Noticed(str(error), warning=True))
                continue
            if waiting not in self.waiting:  # taken back while the user was asked about a file
                continue
            note = "\n\n".join(filter(None, (self.plan_mode.note, ruling.context)))
            said = self.conversation.add_user(
                outgoing.text, note, outgoing.attachments, outgoing.files, in_turn=True
            )
            self.waiting.remove(waiting)
            await self.emit(Steered(said))
            for line in (*ruling.lines, *outgoing.notices):
                await self.emit(Noticed(line, warning=True))

    async def _is_sent_on(self, answer: Message) -> bool:
        """Ask the Stop hooks whether the turn may end; one that refuses sends the model on, once a turn."""
        ruling = await self.hooks.before_stop(answer.text, is_sent_on=self._sent_on)
        for line in ruling.lines:
            await self.emit(Noticed(line, warning=True))
        if not ruling.refuses or ruling.stops:
            return False
        why = one_line(ruling.reason, 300)
        if self._sent_on:
            await self.emit(Noticed(f"A Stop hook refused again, and the turn ends all the same: {why}"))
            return False
        self._sent_on = True
        await self.emit(Noticed(f"A Stop hook sends the model on: {why}"))
        said = self.conversation.add_user(f"[from a Stop hook] {ruling.reason}", in_turn=True)
        await self.emit(Steered(said))
        return True

    async def _announce_written_calls(self) -> None:
        """Say once a session why calls of tools that only read are asked about."""
        setup = self.planner.setup
        if setup.tool_calls == "text" or self.calls.permissions.knows_written_calls:
            return
        self.calls.permissions.knows_written_calls = True
        can_ask = self.calls.permissions.listener.ask is not None
        await self.emit(Noticed(written_calls_line(setup.model, can_ask=can_ask)))

    def _limit(self, iteration: int) -> str:
        """Which limit of tool use is reached; empty while none is."""
        if iteration > self.max_iterations:
            return f"The model called tools {self.max_iterations} times over (agent.max_tool_iterations)"
        if self.calls.is_spent:
            return f"The model made {self.calls.max_calls:,} calls (agent.max_tool_calls)"
        return ""

    async def _ask(self, iteration: int, tool_choice: ToolChoice) -> Message:
        """Return the reply, of another model while the session's own is down (`Fallbacks`)."""
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
        """Whether anything came of the reply to the request under way."""
        return self._reply is not None and self._reply.has_begun

    async def _fall_back(self, error: ProviderError | ContextOverflowError) -> bool:
        """Go on with another model after an outage, if there is one; whatever the turn has done stays."""
        setup = self.planner.setup
        before = setup.model
        if not self.fallbacks.take_over(error):
            return False
        log.warning("%s failed, %s answers instead: %s", before, setup.model, error)
        if self._reply is not None:
            self._reply.end(Ending.FAILED)
        await self._begin()
        await self.emit(Noticed(self.fallbacks.describe(before), warning=True))
        return True

    async def _ask_model(self, iteration: int, tool_choice: ToolChoice) -> Message:
        """Return the reply; a request refused as too long is planned and sent again, at most twice."""
        advice, refused = OverflowAdvice(), 0
        for attempt in itertools.count():
            await self.planner.counts.count_long(self.conversation.recent, self.planner.setup.model)
            planned = await self._plan_below(advice.most, refused, tool_choice)
            if self.room is not None:
                self.room.take(planned.report)
            if planned.report.trimmed:
                for line in await self.hooks.before_compact("auto"):
                    await self.emit(Noticed(line))
            await self.emit(PromptPlanned(planned.report))
            await self._say_reserve(planned.report.reduced_reserve)
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
                await self.conversation.read_rest()  # what was counted of any part of it may be wrong
                if self.planner.feedback.learn_refusal(planned, advice.counted, self.conversation.messages):
                    advice = advice.without_counts()
                    self.conversation.save_counts()
                if advice.learned is not None:
                    self.planner.setup.learn(advice.learned)
                refused = planned.report.bound
                if attempt == RESENDS or not await self._may_resend(advice, refused, tool_choice):
                    raise refusal from error
                if self._reply is not None:
                    self._reply.end(Ending.FAILED)
                await self.emit(Noticed(advice.line))
        raise AssertionError  # the count never ends

    async def _say_reserve(self, reduced: int) -> None:
        """Tell the user, once a turn, that little room is left for the answer."""
        if not reduced or self._told_reserve:
            return
        self._told_reserve = True
        line = f"The window is nearly full: some {reduced:,} tokens are left for the answer."
        await self.emit(Noticed(line))

    def _as_refusal(self, error: ProviderError, planned: PlannedRequest) -> ProviderError | None:
        """`error` as a refusal for length, where it is one or may well be one; None where it is none."""
        if self._has_begun:
            return None
        if error.kind is ErrorKind.TOO_LONG:
            return error
        if self._doubted or error.kind is not ErrorKind.BAD_REQUEST or not is_near_limit(planned):
            return None
        self._doubted = True
        return ProviderError(ErrorKind.TOO_LONG, str(error), detail=error.detail)

    async def _plan_below(self, most: int, refused: int, tool_choice: ToolChoice) -> PlannedRequest:
        """Plan a request of `most` tokens, or the least there is, where that is less than was `refused`.

        Raises ContextOverflowError.
        """
        try:
            return await self.plan(tool_choice, most)
        except ContextOverflowError as error:
            if not most or error.current >= refused:
                raise
            least = error.current
        return await self.plan(tool_choice, least)

    async def _may_resend(self, advice: OverflowAdvice, refused: int, tool_choice: ToolChoice) -> bool:
        """Whether less can be sent; with rolling off only a shorter answer can be asked for."""
        if self.planner.setup.rolling and not advice.most:
            return True
        if advice.most and not self.planner.setup.rolling:
            return False
        try:
            await self._plan_below(advice.most, refused, tool_choice)
        except ContextOverflowError:
            return False
        return True

    async def _request(self, planned: PlannedRequest, iteration: int) -> Message:
        """Send one request; its record in the store is finished whatever comes of it."""
        reply = self._reply = Reply(
            self.conversation, self.provider, replace(planned.request, patience=self.fallbacks.patience),
            planned.made_by, iteration, self.emit, self.planner.setup.tool_calls != "native",
        )  # fmt: skip
        record_id = self.planner.record(planned)
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
            miss = self.planner.finish(record_id, planned, reply.usage, time.monotonic() - started, error)
            self.spending.settle()
            if miss is not None:
                self.misses.append(miss)
        if not reply.was_retried:  # some servers report the sum of what was tried
            self.planner.feedback.learn_answer(reply.usage, message, self.conversation.branch)
            with contextlib.suppress(StoreError):  # they are stored with the next request
                self.conversation.save_counts()
        return message

    def _settle(self, outcome: Outcome, settled: list[ReplyEnded | ToolEnded]) -> None:
        """Leave nothing open. Waits for nothing, so that a second stop cannot come between."""
        failed = outcome in {Outcome.FAILED, Outcome.BROKEN}
        ending = Ending.FAILED if failed else Ending.CANCELLED
        reply_ended = self._reply.end(ending) if self._reply is not None else None
        if reply_ended is not None:
            settled.append(reply_ended)
        text = "[not run: the program failed]" if failed else "[cancelled: not run]"
        settled.extend(self.calls.refuse_rest(text, ending))

    def _explain(self, error: Exception) -> tuple[Outcome, str]:
        """The outcome, and the one line for the user."""
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
