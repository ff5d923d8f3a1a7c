"""Python's garbage collector, kept from holding the start and the keys up."""

from __future__ import annotations

import gc

# Objects made before the youngest are looked through, and how often the older are. By default the
# imports of a start are looked through again and again for nothing, a tenth of its time, and a full
# look comes every few seconds of streaming and takes 100 ms and more among all that litellm loads.
_THRESHOLDS = (20_000, 50, 20)


def look_seldom() -> None:
    """Look for garbage more rarely than Python would by itself."""
    gc.set_threshold(*_THRESHOLDS)


def spare_what_is_loaded() -> None:
    """Never again look for garbage in what is loaded by now: modules and their tables stay to the end."""
    gc.freeze()
