"""Call the store of a session in order, without blocking the event loop for a network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from rolling_chat.agent.stops import finished, stop_at_next_await
from rolling_chat.providers.background_thread import in_background, start_in_background
from rolling_chat.sessions.store import SessionStore

Result = TypeVar("Result")


class StoreQueue:
    """Runs the store calls of one session, one at a time.

    A local store answers before a thread could start, so it is called directly; a remote one is called in a
    thread. A call that has begun is always completed, so that session and store never differ. A cancellation
    meanwhile takes effect at the next await.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._calling = asyncio.Lock()

    async def run(self, work: Callable[[], Result], *, is_long: bool = False) -> Result:
        """Do `work` and return its result; if it `is_long`, use a thread in any case."""
        if not self._store.is_remote and not is_long:
            return work()
        calling = asyncio.create_task(self._in_turn(work))
        if await finished(calling, self._store.hurry):
            stop_at_next_await()
        return calling.result()

    async def settle(self, work: Callable[[], Result]) -> Result:
        """Do `work` for a task that was cancelled, ignoring further cancellations."""
        if not self._store.is_remote:
            return work()
        calling = asyncio.create_task(self._in_turn(work))
        await finished(calling)
        return calling.result()

    async def _in_turn(self, work: Callable[[], Result]) -> Result:
        async with self._calling:
            try:
                calling = start_in_background(work)
            except RuntimeError:  # no thread could be started
                return work()
            return await calling


async def off_loop(store: SessionStore, work: Callable[[], Result]) -> Result:
    """Do `work` that calls a store, in a thread if that is remote, without waiting for other calls."""
    return await in_background(work) if store.is_remote else work()
