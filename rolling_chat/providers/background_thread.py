"""Slow work off the event loop that nobody waits for at the end."""

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
    """Do `work` in a daemon thread and wait for its result; raises what it raises.

    Unlike asyncio.to_thread it leaves nothing that the end of the loop, or of the program, waits for:
    an import of seconds must not keep a user who quits.
    """
    import asyncio  # noqa: PLC0415  # there is a loop; commands without one import this module as well

    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def run() -> None:
        try:
            settle = partial(future.set_result, work())
        except BaseException as error:  # it belongs to whoever waits
            settle = partial(future.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop has closed: nobody waits any more
            loop.call_soon_threadsafe(_unless_done, future, settle)

    threading.Thread(target=run, name="rolling-chat-background", daemon=True).start()
    return await future


def _unless_done(future: asyncio.Future[Any], settle: Callable[[], None]) -> None:
    if not future.done():
        settle()
