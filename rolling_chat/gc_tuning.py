"""Python's garbage collector, kept from holding the start and the keys up."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Objects made before the youngest are looked through, and how often the older are. By default the
# imports of a start are looked through again and again for nothing, a tenth of its time.
_AT_THE_START = (20_000, 50, 20)
# Then a look must be short: some 20,000 of the objects that a screen is painted with take 10 to 50 ms,
# and a full look 60 to 200 ms. By default that comes every few seconds of streaming; here it waits until
# nobody types (`tidy_up`), or for as much as hours leave behind.
_WHILE_KEYS_ARE_TYPED = (2_000, 5, 1_000)
_WORTH_A_FULL_LOOK = 30  # looks at the middle generation, some 300,000 objects that stayed


def look_seldom() -> None:
    """Make Python's garbage collector run less often."""
    gc.set_threshold(*_AT_THE_START)


def spare_what_is_loaded() -> None:
    """Exempt everything loaded so far from garbage collection: modules stay until the end."""
    gc.freeze()
    gc.set_threshold(*_WHILE_KEYS_ARE_TYPED)


def tidy_up() -> None:
    """Run a garbage collection if much was allocated since; for idle moments."""
    if gc.get_count()[2] >= _WORTH_A_FULL_LOOK:
        gc.collect()


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
