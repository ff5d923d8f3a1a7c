"""What a session has to do with its store: in order, and never holding up the event loop for a network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from rolling_chat.agent.stops import finished, stop_at_next_await
from rolling_chat.providers.background_thread import in_background, start_in_background
from rolling_chat.sessions.store import SessionStore

Result = TypeVar("Result")


class StoreQueue:
    """Does the work of one session that calls the store, one after the other.

    A store on this machine answers sooner than a thread begins: it is called at once. A remote one is called
    from a thread. What has begun is done to its end in both, so that session and store never differ: whoever
    is cancelled meanwhile is so at the next await, as if nothing had been waited for.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._calling = asyncio.Lock()

    async def run(self, work: Callable[[], Result], *, is_long: bool = False) -> Result:
        """Do `work` and return its result; what `is_long` is done in a thread in any case."""
        if not self._store.is_remote and not is_long:
            return work()
        calling = asyncio.create_task(self._in_turn(work))
        if await finished(calling, self._store.hurry):
            stop_at_next_await()
        return calling.result()

    async def settle(self, work: Callable[[], Result]) -> Result:
        """Do `work` for a task that was cancelled, and may be so again: nothing of that is heeded."""
        if not self._store.is_remote:
            return work()
        calling = asyncio.create_task(self._in_turn(work))
        await finished(calling)
        return calling.result()

    async def _in_turn(self, work: Callable[[], Result]) -> Result:
        async with self._calling:
            try:
                calling = start_in_background(work)
            except RuntimeError:  # no thread can be had
                return work()
            return await calling


async def off_loop(store: SessionStore, work: Callable[[], Result]) -> Result:
    """Do `work` that calls a store, in no order: in a thread where it is remote."""
    return await in_background(work) if store.is_remote else work()
