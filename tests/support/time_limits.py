"""A command's time limit that is reached when it has come to a point, however slow the machine is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from tests.support.patience import eventually

LIMIT = 3_599
"""Seconds; a limit that nothing else has."""

_T = TypeVar("_T")


async def out_of_time(run: Callable[[int], Coroutine[Any, Any, _T]], is_there: Callable[[], object]) -> _T:
    """Run what takes a time limit, given `LIMIT`, and let the time be up once it `is_there`."""
    limits: list[asyncio.Timeout] = []
    limited = asyncio.timeout

    def timeout(delay: float | None) -> asyncio.Timeout:
        made = limited(delay)
        if delay == LIMIT:
            limits.append(made)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "timeout", timeout)
        running = asyncio.create_task(run(LIMIT))
        try:
            await eventually(lambda: (limits and is_there()) or running.done())
            if not running.done():
                limits[0].reschedule(asyncio.get_running_loop().time())
            return await running
        finally:
            running.cancel()
