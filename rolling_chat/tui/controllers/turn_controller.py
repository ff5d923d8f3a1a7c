"""Run turns: feed a chat's events to the state, ask the user's questions, send waiting messages."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Protocol

from rolling_chat.agent import ChatError, as_typed
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
from rolling_chat.events import (
    Attach,
    AttachmentQuestion,
    Event,
    Outcome,
    Permission,
    PermissionAnswer,
    PermissionRequest,
    RequestStarted,
    SpendingQuestion,
    Steered,
    TurnEnded,
    TurnStarted,
)
from rolling_chat.gc_tuning import collect_when_idle
from rolling_chat.tui.state.screen_state import ScreenState

if TYPE_CHECKING:
    from rolling_chat.agent import Chat
    from rolling_chat.agent.turn.attaching import Insertion
    from rolling_chat.agent.turn.oversized import LargeMessage, Obstacle
    from rolling_chat.tui.controllers.background import Work
    from rolling_chat.tui.controllers.meter import Meter
    from rolling_chat.tui.controllers.question_slot import Asking

_log = logging.getLogger("rolling_chat.tui")

_STOP_SECONDS = 5.0


class Drafts(Protocol):
    """An owner of drafts that accepts text that could not be sent."""

    def give_back(self, text: str) -> None:
        """Put `text` in the prompt box, above what is typed there."""
        ...

    def waiting_changed(self) -> None:
        """Show the waiting messages, and save them with the draft."""
        ...


class Stage(Protocol):
    """The part of the screen that a turn uses."""

    @property
    def drafts(self) -> Drafts:
        """The owner of drafts, which accepts text that was not sent."""
        ...

    def turn_over(self) -> None:
        """Update the messages' fates after a turn ended."""
        ...

    def load(self) -> None:
        """Show the conversation again, after a part of it was undone."""
        ...


class TurnController:
    """Runs one turn at a time on the screen; `clock` is monotonic, in seconds."""

    def __init__(
        self,
        chat: Chat,
        state: ScreenState,
        meter: Meter,
        asking: Asking,
        stage: Stage,
        *,
        clock: Callable[[], float],
        fault: Callable[[str, Exception], str],
    ) -> None:
        self._chat = chat
        self._state = state
        self._meter = meter
        self._asking = asking
        self._stage = stage
        self._clock = clock
        self._fault = fault
        self._idle = asyncio.Event()
        self._idle.set()

    def say(self, text: str, inserted: Sequence[Insertion] = ()) -> Work:
        """Return work that sends a message, then the waiting ones; the screen is busy from this call on.

        Files that the text mentions with marks are attached, and so is the output of commands, `inserted`.
        """
        return self._begun(lambda: self._chat.send(text, inserted), text)

    def carry_on(self) -> Work:
        """Return work that continues an interrupted turn; the screen is busy from this call on."""
        return self._begun(self._chat.carry_on)

    def stop(self) -> None:
        """Ask the running turn to stop, without waiting for its end."""
        if self._state.busy:
            self._state.stopping()
            self._chat.stop()

    async def settle(self) -> None:
        """Stop the running turn and wait until it has ended, for a few seconds at most."""
        self.stop()
        try:
            await asyncio.wait_for(self._idle.wait(), _STOP_SECONDS)
        except TimeoutError:
            _log.warning("the turn did not stop within %s seconds", _STOP_SECONDS)

    async def ask_permission(self, request: PermissionRequest) -> PermissionAnswer:
        """Ask the user whether a tool call may run."""
        reply = await self._asking.ask(permission_question(request))
        return PermissionAnswer(Permission(reply.value), reply.words)

    async def ask_attachment(self, question: AttachmentQuestion) -> Attach:
        """Ask the user about a file that a message mentions."""
        return Attach((await self._asking.ask(attachment_question(question))).value)

    async def ask_spending(self, question: SpendingQuestion) -> bool:
        """Ask the user whether a request may pass a limit of cost."""
        return (await self._asking.ask(spending_question(question))).value == SPEND

    def _begun(self, begin: Callable[[], AsyncGenerator[Event]], text: str = "") -> Work:
        """Mark the screen as busy at once, and return the work that runs the turn."""
        self._idle.clear()
        self._state.begin(self._clock())
        return partial(self._run, begin, text)

    async def _run(self, begin: Callable[[], AsyncGenerator[Event]], text: str) -> None:
        try:
            outcome = await self._run_turn(begin, text)
        finally:
            self._idle.set()
        following = await self._after_full() if outcome is Outcome.FULL else None
        if following is not None:
            await following()
            return
        waiting = self._chat.waiting
        if not waiting:
            return
        if outcome is Outcome.DONE:
            text = waiting.take_oldest()
            self._stage.drafts.waiting_changed()
            await self.say(text)()
        else:
            self._give_back(waiting.take_all())

    def _give_back(self, texts: Sequence[str]) -> None:
        """Return unsent texts to the prompt box, in their order."""
        self._stage.drafts.give_back("\n".join(texts))
        self._stage.drafts.waiting_changed()

    async def _run_turn(self, begin: Callable[[], AsyncGenerator[Event]], text: str) -> Outcome:
        """Process a turn's events, whatever goes wrong; a message that was not stored returns to the box."""
        state, outcome, stored = self._state, Outcome.FAILED, not text
        try:
            await self._ask_for_address()
            async with aclosing(begin()) as events:
                async for event in events:
                    stored = stored or isinstance(event, TurnStarted)
                    outcome = self._handle(event, outcome)
        except ChatError as error:
            state.fail(str(error), self._clock(), sent=stored)
        except Exception as error:  # a bug in a turn must not end the program
            state.fail(self._fault("The turn broke", error), self._clock())
        finally:
            if state.busy:
                state.fail("The turn ended early.", self._clock())
            if not stored:
                self._give_back([text, *self._chat.waiting.take_all()])
            self._meter.turn_over()
            self._stage.turn_over()
        return outcome

    def _handle(self, event: Event, outcome: Outcome) -> Outcome:
        self._meter.take(event)
        self._state.apply(event, self._clock())
        match event:
            case RequestStarted():
                collect_when_idle(is_waiting=True)
            case Steered():
                self._stage.drafts.waiting_changed()
            case _:
                pass
        return event.outcome if isinstance(event, TurnEnded) else outcome

    async def _ask_for_address(self) -> None:
        """Ask for the server's address, in a session of an old version that did not store it."""
        chat = self._chat
        if chat.session.address is not None or chat.session.holder:
            return
        reply = await self._asking.ask(address_question(chat.session.model, chat.session.known_addresses))
        if reply.value:
            self._state.notice(chat.session.set_model(chat.session.model, reply.value))

    async def _after_full(self) -> Work | None:
        """Ask what to do about a request that does not fit; return the work that continues, if any."""
        try:
            obstacle = await self._chat.session.oversized.find_obstacle()
            if self._state.busy:  # the user went on meanwhile
                return None
            return await self._overcome(obstacle)
        except ChatError as error:
            self._state.notice(str(error), warning=True)
            return None

    async def _overcome(self, obstacle: Obstacle) -> Work | None:
        if obstacle.message is not None:
            return await self._shorten(obstacle.message)
        if obstacle.line:
            self._state.notice(obstacle.line)
        if not obstacle.rolling_helps or (await self._asking.ask(full_question())).value != ROLL:
            return None
        warning = self._chat.session.overrides.set_rolling(True)
        self._state.notice("Rolling context is on; new sessions begin with it on.")
        if warning:
            self._state.notice(warning, warning=True)
        return self.carry_on()

    async def _shorten(self, large: LargeMessage) -> Work | None:
        """Ask what to send instead of a message that is too large by itself, and undo that message."""
        chat, stage = self._chat, self._stage
        way = (await self._asking.ask(large_message_question(large))).value
        if way == EDIT and chat.session.conversation.recent[-1].id == large.id:
            text = as_typed(chat.session.history.undo())
            stage.load()
            stage.drafts.give_back(text)
        elif way in (HEAD_AND_TAIL, AS_FILE):
            text = await chat.session.oversized.keep_as_file(large, head_and_tail=way == HEAD_AND_TAIL)
            stage.load()
            return self.say(text)
        return None
