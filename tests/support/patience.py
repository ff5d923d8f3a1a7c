"""Waiting for a condition, and how long a test does so before it gives up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE_SECONDS = 60.0
"""Nothing waits this long when all is well, however busy the machine is."""

_LOOK_EVERY = 0.005  # seconds between two looks at a condition


async def eventually(condition: Callable[[], object], what: str = "it never came true") -> None:
    """Wait until a condition holds of which nobody tells, such as a file that another process writes."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, what
        await asyncio.sleep(_LOOK_EVERY)


def wait_for(
    condition: Callable[[], object], what: str = "it never came true", seconds: float = PATIENCE_SECONDS
) -> None:
    """Block until a condition holds of which nobody tells."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(_LOOK_EVERY)
