"""`--resume` of long sessions beside an empty one, until its end is seen and a key is taken; later keys."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.benchmarks.screen.figures import percentile, spread
from tests.benchmarks.screen.keys import FIRST, appearances, type_along
from tests.benchmarks.screen.sessions import LAST_WORDS, build_session
from tests.benchmarks.screen.windows import Desk, desk

SIZES = (0, 10_000, 100_000)
ROUNDS = 5
SECONDS_OF_KEYS = 10.0


@dataclass
class Resumed:
    """Milliseconds: from exec until all is there, a figure a round; of the keys typed afterwards."""

    there: list[float] = field(default_factory=list)
    keys: list[float] = field(default_factory=list)
    unseen: int = 0


def run() -> Iterator[str]:
    """All sizes in one store, one after the other, round after round."""
    with desk() as place:
        sessions = {size: build_session(place, size) for size in SIZES}
        figures = {size: Resumed() for size in SIZES}
        for size, session in sessions.items():
            _resume(place, session, Resumed(), is_empty=not size)  # the first reads the disk
        for _ in range(ROUNDS):
            for size, session in sessions.items():
                _resume(place, session, figures[size], is_empty=not size)
        for size, session in sessions.items():
            _type(place, session, figures[size])
    empty = statistics.median(figures[0].there)
    yield f"{'messages':>9}  exec to the last message and a key, of {ROUNDS} alternating"
    for size, taken in figures.items():
        ratio = statistics.median(taken.there) / empty
        goal = f"   {ratio:.2f} times the empty one   (goal 1.5)" if size else ""
        yield f"{size:>9,}  {spread(taken.there)}{goal}"
    yield f"{'messages':>9}  keys of the first {SECONDS_OF_KEYS:.0f} s after it"
    for size, taken in figures.items():
        yield (
            f"{size:>9,}  median {statistics.median(taken.keys):5.0f} ms, "
            f"p95 {percentile(taken.keys, 0.95):5.0f} ms, "
            f"worst {max(taken.keys):5.0f} ms of {len(taken.keys)}, {taken.unseen} unseen"
        )


def _resume(place: Desk, session: str, into: Resumed, *, is_empty: bool = False) -> None:
    began = time.perf_counter()
    with place.program("--resume", session) as terminal:
        terminal.type(FIRST)
        last = "0 messages" if is_empty else LAST_WORDS  # its title, where there is nothing else to see
        there = appearances(terminal, lambda screen: FIRST in screen and last in screen)
    into.there.append(1_000 * (there[0] - began))


def _type(place: Desk, session: str, into: Resumed) -> None:
    with place.program("--resume", session) as terminal:
        terminal.type(FIRST)
        terminal.see(FIRST)
        keys = type_along(terminal, is_over=lambda: False, most_seconds=SECONDS_OF_KEYS)
        into.keys += keys.times
        into.unseen += keys.unseen
