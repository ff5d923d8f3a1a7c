"""Run a turn in a task of its own, so that a stop or a lost listener ends it cleanly."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator

from rolling_chat.agent.errors import ChatError
from rolling_chat.agent.turn.loop import AgentLoop
from rolling_chat.events import Event, Outcome, TurnEnded
from rolling_chat.messages import Usage

log = logging.getLogger("rolling_chat.agent.turn.running")

MAX_UNREAD = 1_000
"""The events that may wait for the listener; a turn whose events nobody reads pauses there."""

_BUSY = "The model is still answering: Esc stops it."


class TurnGate:
    """A flag for whether a turn of a session is running: `idle` is set while none is."""

    def __init__(self) -> None:
        self.idle = asyncio.Event()
        self.idle.set()

    def require_idle(self) -> None:
        """Raise ChatError while a turn runs."""
        if not self.idle.is_set():
            raise ChatError(_BUSY)


class EventQueue:
    """A queue of one turn's events for one listener."""

    def __init__(self) -> None:
        self._unread: deque[Event] = deque()
        self._came = asyncio.Event()
        self._has_room = asyncio.Event()
        self._is_closed = False

    async def put(self, event: Event) -> None:
        """Add an event, and wait while the listener is far behind; cancelling this loses no event."""
        self._unread.append(event)
        self._came.set()
        if len(self._unread) >= MAX_UNREAD:
            self._has_room.clear()
            await self._has_room.wait()

    def close(self) -> None:
        """End the queue; the listener still reads the remaining events."""
        self._is_closed = True
        self._came.set()

    async def read(self) -> AsyncIterator[Event]:
        """Yield the events in order, until the queue is closed and empty."""
        while self._unread or not self._is_closed:
            if not self._unread:
                self._came.clear()
                await self._came.wait()
                continue
            event = self._unread.popleft()
            if len(self._unread) < MAX_UNREAD:
                self._has_room.set()
            yield event


class RunningTurn:
    """Runs an agent loop in a task at once, and yields its events in order."""

    def __init__(self, loop: AgentLoop, events: EventQueue) -> None:
        self._loop = loop
        self._events = events
        self.task = asyncio.create_task(loop.run())
        # A callback also runs if the task is cancelled before its first line.
        self.task.add_done_callback(lambda _: events.close())

    @property
    def usage(self) -> Usage:
        """The usage that providers reported for this turn so far."""
        return self._loop.usage

    async def events(self) -> AsyncIterator[Event]:
        """Yield the turn's events as they arrive; the last is TurnEnded, once the task has ended."""
        async for event in self._events.read():
            yield event
        if self.task.cancelled():
            yield TurnEnded(Outcome.CANCELLED, Usage(), 0.0)
            return
        if failure := self.task.exception():
            log.error("the turn could not be ended", exc_info=failure)
            yield TurnEnded(Outcome.FAILED, self.usage, 0.0, "The turn broke on a fault of the program.")
            return
        end = self.task.result()
        for event in end.settled:
            yield event
        yield end.ended

    async def close(self) -> None:
        """Stop the turn if it is still running, and wait until it is settled."""
        if self.task.done():
            return
        self.task.cancel()
        await asyncio.wait({self.task})
