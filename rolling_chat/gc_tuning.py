"""Memory tuning: collect garbage when nobody waits, and return freed memory to the system."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

# Thresholds of the three generations. With Python's defaults, a tenth of the startup time goes into
# collections that find nothing. A command that runs once creates few objects after that; on a screen each
# collection must be short, also during startup.
_ONE_RUN = (100_000, 50, 20)
_STARTUP = (20_000, 50, 20)
# After startup, collections must be short: 20,000 objects of a painted screen take 10 to 50 ms, a full
# collection 60 to 200 ms. With the defaults that happens every few seconds of streaming; here it waits until
# nobody types (`collect_when_idle`), or until hours of garbage have accumulated.
_INTERACTIVE = (2_000, 5, 1_000)
_WORTH_A_FULL_LOOK = 30  # collections of the middle generation, some 300,000 surviving objects
_WORTH_IT_WHILE_WAITING = 100  # the same, while the user waits for the model anyway
# glibc maps larger blocks individually, and unmaps them when they are freed. Left alone, it raises this
# threshold to 32 MB after the first such frees: after a copy of a long session, 30 MB stayed allocated.
_MMAP_THRESHOLD, _MMAP_BYTES = -3, 262_144


def tune_for_one_run() -> None:
    """Make Python's garbage collector run less often, and return freed memory to the system."""
    gc.set_threshold(*_ONE_RUN)
    if (mallopt := _of_libc("mallopt")) is not None:
        mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)


def tune_for_startup() -> None:
    """Make each garbage collection short, for a screen that starts."""
    gc.set_threshold(*_STARTUP)


def freeze_loaded_objects() -> None:
    """Exempt everything loaded so far from garbage collection: modules stay until the end."""
    gc.freeze()
    gc.set_threshold(*_INTERACTIVE)


def collect_when_idle(*, is_waiting: bool = False) -> None:
    """Run a garbage collection if many objects accumulated, and return the memory; for idle moments.

    `is_waiting`: the user waits for the model, and may type meanwhile.
    """
    if gc.get_count()[2] >= (_WORTH_IT_WHILE_WAITING if is_waiting else _WORTH_A_FULL_LOOK):
        gc.collect()
        if (trim := _of_libc("malloc_trim")) is not None:
            trim(0)


@cache
def _of_libc(name: str) -> Callable[..., int] | None:
    """Return a function of glibc; None on other systems."""
    try:
        function: Callable[..., int] = getattr(ctypes.CDLL("libc.so.6"), name)
    except (OSError, AttributeError):
        return None
    return function


@contextmanager
def without_collection() -> Iterator[None]:
    """Suspend garbage collection in a block, and exempt what the block creates.

    Otherwise collections take a quarter of an import's time, and a second at the end of the program.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_on:
            gc.enable()
