"""Run slow work in a daemon thread that does not delay the end of the program."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

Result = TypeVar("Result")


async def in_background(work: Callable[[], Result]) -> Result:
    """Run `work` in a daemon thread and return its result; re-raise its exception.

    Unlike asyncio.to_thread, it leaves nothing that the end of the event loop or program waits for: an import
    that takes seconds must not delay a user who quits.
    """
    return await start_in_background(work)


def start_in_background(work: Callable[[], Result]) -> asyncio.Future[Result]:
    """Start `work` in a daemon thread; return the future of its result.

    Raises RuntimeError if no thread can be started.
    """
    import asyncio  # noqa: PLC0415  # a loop is running; commands without one import this module too

    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def run() -> None:
        try:
            settle = partial(future.set_result, work())
        except BaseException as error:  # it is raised in the waiting task
            settle = partial(future.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is waiting any more
            loop.call_soon_threadsafe(_settle_unless_done, future, settle)

    threading.Thread(target=run, name="rolling-chat-background", daemon=True).start()
    return future


def _settle_unless_done(future: asyncio.Future[Any], settle: Callable[[], None]) -> None:
    if not future.done():
        settle()
