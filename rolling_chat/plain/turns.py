"""Run turns in plain lines: send a message, write the turn's events, and ask the user's questions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from rolling_chat.agent import Chat, ChatError, as_typed
from rolling_chat.agent.questions import (
    AS_FILE,
    EDIT,
    HEAD_AND_TAIL,
    ROLL,
    SPEND,
    address_question,
    attachment_question,
    full_question,
    large_message_question,
    permission_question,
    spending_question,
)
from rolling_chat.agent.turn.attaching import Insertion
from rolling_chat.agent.turn.oversized import LargeMessage
from rolling_chat.events import (
    Attach,
    AttachmentQuestion,
    Event,
    Outcome,
    Permission,
    PermissionAnswer,
    PermissionRequest,
    SpendingQuestion,
    SummaryEnded,
    SummaryEvent,
    TurnEnded,
)
from rolling_chat.plain.console import Console
from rolling_chat.plain.event_lines import EventLines, context_line
from rolling_chat.plain.questions import ask

log = logging.getLogger(__name__)

Begin = Callable[[], AsyncGenerator[Event]]


class Turns:
    """Runs one turn at a time; Ctrl+C stops it."""

    def __init__(self, chat: Chat, console: Console) -> None:
        self._chat = chat
        self._console = console
        self._asking = asyncio.Lock()
        chat.listener.ask = self._ask_permission
        chat.listener.ask_attachment = self._ask_attachment
        chat.listener.ask_spending = self._ask_spending
        chat.listener.on_summary = self._summary
        chat.listener.on_server = self._server_changed

    def _server_changed(self, line: str) -> None:
        if line:
            self._console.write(f"Warning: {line}")

    async def say(self, text: str, inserted: Sequence[Insertion] = ()) -> None:
        """Send a message, with texts `inserted` by commands below it, and wait for the end of its turn."""
        await self._run(lambda: self._chat.send(text, inserted))

    async def carry_on(self) -> None:
        """Continue an interrupted turn."""
        await self._run(self._chat.carry_on)

    def write_context(self) -> None:
        """Write the figures of the gauge."""
        try:
            self._console.write(context_line(self._chat.session.preview.report(), self._chat.usage.cost))
        except ChatError as error:
            self._console.write(f"Warning: {error}")

    async def _run(self, begin: Begin) -> None:
        following: Begin | None = begin
        while following is not None:
            try:
                await self._ask_for_address()
                outcome = await self._run_turn(following)
                following = await self._after_full() if outcome is Outcome.FULL else None
            except ChatError as error:
                self._console.write(f"Warning: {error}")
                return
        self.write_context()

    async def _run_turn(self, begin: Begin) -> Outcome:
        """Write a turn's events as lines until it ends; Ctrl+C stops the turn, which then ends by itself."""
        lines, outcome = EventLines(self._chat.session.model), Outcome.FAILED
        with self._console.interruptible() as interrupted:
            stopper = asyncio.ensure_future(self._stop_when(interrupted))
            try:
                async with aclosing(begin()) as events:
                    async for event in events:
                        for line in lines.lines(event):
                            self._console.write(line)
                        outcome = event.outcome if isinstance(event, TurnEnded) else outcome
            finally:
                stopper.cancel()
        return outcome

    async def _stop_when(self, interrupted: asyncio.Event) -> None:
        await interrupted.wait()
        self._console.write("Stopping.")
        self._chat.stop()

    async def _ask_for_address(self) -> None:
        """Ask for the server's address, in a session of an old version that did not store it."""
        session = self._chat.session
        if session.address is not None or session.holder:
            return
        reply = await ask(self._console, address_question(session.model, session.known_addresses))
        if reply.value:
            self._console.write(session.set_model(session.model, reply.value))

    async def _after_full(self) -> Begin | None:
        """Ask what to do about a request that does not fit; return the turn that continues, if any."""
        obstacle = await self._chat.session.oversized.find_obstacle()
        if obstacle.message is not None:
            return await self._shorten(obstacle.message)
        if obstacle.line:
            self._console.write(obstacle.line)
        if not obstacle.rolling_helps or (await ask(self._console, full_question())).value != ROLL:
            return None
        warning = self._chat.session.overrides.set_rolling(True)
        self._console.write("Rolling context is on; new sessions begin with it on.")
        if warning:
            self._console.write(f"Warning: {warning}")
        return self._chat.carry_on

    async def _shorten(self, large: LargeMessage) -> Begin | None:
        """Ask what to send instead of a message that is too large by itself, and undo that message."""
        session = self._chat.session
        way = (await ask(self._console, large_message_question(large))).value
        if way == EDIT:
            text = as_typed(session.history.undo())
            self._console.write(f"Your message was taken back. It began with: {text[:200]}")
        elif way in (HEAD_AND_TAIL, AS_FILE):
            text = await session.oversized.keep_as_file(large, head_and_tail=way == HEAD_AND_TAIL)
            return lambda: self._chat.send(text)
        return None

    async def _ask_permission(self, request: PermissionRequest) -> PermissionAnswer:
        async with self._asking:
            reply = await ask(self._console, permission_question(request))
        return PermissionAnswer(Permission(reply.value), reply.words)

    async def _ask_attachment(self, question: AttachmentQuestion) -> Attach:
        async with self._asking:
            return Attach((await ask(self._console, attachment_question(question))).value)

    async def _ask_spending(self, question: SpendingQuestion) -> bool:
        async with self._asking:
            return (await ask(self._console, spending_question(question))).value == SPEND

    def _summary(self, event: SummaryEvent) -> None:
        if isinstance(event, SummaryEnded) and event.notice:
            self._console.write(event.notice)
