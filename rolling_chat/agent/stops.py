"""Work that a stop does not cut in half."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


def _nothing() -> None:
    pass


async def finished(work: asyncio.Future[Any], on_stop: Callable[[], None] = _nothing) -> bool:
    """Wait until `work` is done, however often the waiting task is cancelled; return whether it was.

    `on_stop` is called at each of these.
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
    """Cancel this task where it awaits next, for a cancellation that `finished` has held back."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()  # it was counted when it came
        task.cancel()
