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
    """Look for garbage more rarely than Python would by itself."""
    gc.set_threshold(*_AT_THE_START)


def spare_what_is_loaded() -> None:
    """Never again look for garbage in what is loaded by now: modules and their tables stay to the end."""
    gc.freeze()
    gc.set_threshold(*_WHILE_KEYS_ARE_TYPED)


def tidy_up() -> None:
    """Look through everything that was made since, where that is worth it: for when nobody waits."""
    if gc.get_count()[2] >= _WORTH_A_FULL_LOOK:
        gc.collect()


@contextmanager
def kept_to_the_end() -> Iterator[None]:
    """Look for no garbage while all this is made, nor among it later.

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
