"""Python's garbage collector, kept from holding the start and the keys up."""

from __future__ import annotations

import gc

# Objects made before the youngest are looked through, and how often the older are. By default the
# imports of a start are looked through again and again for nothing, a tenth of its time.
_AT_THE_START = (20_000, 50, 20)
# Then a look must be short: some 20,000 of the objects that a screen is painted with take 10 to 50 ms,
# and a full look, which by default comes every few seconds of streaming, 60 ms and more.
_WHILE_KEYS_ARE_TYPED = (2_000, 5, 100)


def look_seldom() -> None:
    """Look for garbage more rarely than Python would by itself."""
    gc.set_threshold(*_AT_THE_START)


def spare_what_is_loaded() -> None:
    """Never again look for garbage in what is loaded by now: modules and their tables stay to the end."""
    gc.freeze()
    gc.set_threshold(*_WHILE_KEYS_ARE_TYPED)
