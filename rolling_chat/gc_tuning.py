"""Memory: garbage looked for when nobody waits, and what is freed given back to the system."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

# Objects made before the youngest are looked through, and how often the older are. By default the
# imports of a start are looked through again and again for nothing, a tenth of its time. A command that runs
# once makes few more; on a screen each look must be short, also while it starts.
_FOR_ONE_RUN = (100_000, 50, 20)
_AT_THE_START = (20_000, 50, 20)
# Then a look must be short: some 20,000 of the objects that a screen is painted with take 10 to 50 ms,
# and a full look 60 to 200 ms. By default that comes every few seconds of streaming; here it waits until
# nobody types (`tidy_up`), or for as much as hours leave behind.
_WHILE_KEYS_ARE_TYPED = (2_000, 5, 1_000)
_WORTH_A_FULL_LOOK = 30  # looks at the middle generation, some 300,000 objects that stayed
_WORTH_IT_WHILE_WAITING = 100  # likewise, while the user waits for the model anyway
# glibc takes blocks above this from the system one by one, and gives them back when they are freed. Of
# itself it raises that to 32 MB once such blocks were freed: after a copy of a long session, 30 MB stayed.
_MMAP_THRESHOLD, _MMAP_BYTES = -3, 262_144


def look_seldom() -> None:
    """Make Python's garbage collector run less often, and let freed memory go back to the system."""
    gc.set_threshold(*_FOR_ONE_RUN)
    if (mallopt := _of_libc("mallopt")) is not None:
        mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)


def look_briefly() -> None:
    """Make each garbage collection short, for a screen that starts."""
    gc.set_threshold(*_AT_THE_START)


def spare_what_is_loaded() -> None:
    """Exempt everything loaded so far from garbage collection: modules stay until the end."""
    gc.freeze()
    gc.set_threshold(*_WHILE_KEYS_ARE_TYPED)


def tidy_up(*, is_waiting: bool = False) -> None:
    """Run a garbage collection if much was allocated since, and give back what it freed; for idle moments.

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
def kept_to_the_end() -> Iterator[None]:
    """Suspend garbage collection in a block, and exempt what the block creates.

    Else a quarter of the import's time goes into looking, and a second at the end of the program.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_on:
            gc.enable()
