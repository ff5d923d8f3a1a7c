"""Complete work even if the task that waits for it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


def _nothing() -> None:
    pass


async def finished(work: asyncio.Future[Any], on_stop: Callable[[], None] = _nothing) -> bool:
    """Wait until `work` is done, even if the waiting task is cancelled; return whether it was.

    `on_stop` is called for each cancellation.
    """
    was_stopped = False
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            was_stopped = True
            on_stop()
    return was_stopped


def stop_at_next_await() -> None:
    """Cancel this task at its next await, for a cancellation that `finished` has postponed."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()  # the postponed cancellation has been counted already
        task.cancel()
