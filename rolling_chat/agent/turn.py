"""A turn that runs in a task of its own, so that a stop or a lost listener ends it in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

from rolling_chat.agent.loop import AgentLoop
from rolling_chat.events import Event, Outcome, TurnEnded
from rolling_chat.messages import Usage


class RunningTurn:
    """Runs an agent loop at once, and hands out its events in order."""

    def __init__(self, loop: AgentLoop) -> None:
        self._loop = loop
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._produce())
        # Also when the task is cancelled before it has begun, and never ran a line.
        self._task.add_done_callback(lambda _: self._queue.put_nowait(None))

    @property
    def usage(self) -> Usage:
        """What the providers reported of this turn so far."""
        return self._loop.usage

    def stop(self) -> None:
        """End the turn; its last event is TurnEnded all the same."""
        self._task.cancel()

    async def events(self) -> AsyncIterator[Event]:
        """The events as they come. TurnEnded is handed out when the task has ended, and is the last."""
        ended = TurnEnded(Outcome.CANCELLED, Usage(), 0.0)
        while (event := await self._queue.get()) is not None:
            if isinstance(event, TurnEnded):
                ended = event
                continue
            yield event
        yield ended

    async def close(self) -> None:
        """Stop the turn if it still runs, and wait until it is settled."""
        if self._task.done():
            return
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _produce(self) -> None:
        async with aclosing(self._loop.run()) as events:
            async for event in events:
                self._queue.put_nowait(event)
