"""Keys typed while something is done in a long session, and how soon `/context` is there."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from tests.benchmarks.screen.figures import percentile
from tests.benchmarks.screen.keys import KeyTimes, appearances, type_along
from tests.benchmarks.screen.sessions import build_session
from tests.benchmarks.screen.windows import READY, Desk, desk, settle
from tests.support.terminal import Terminal

SIZES = (0, 10_000, 100_000)
SECONDS_OF_KEYS = 6.0
# in this order: the first message is the first that has to trim
ACTS = ("What now?", "And then?", "/undo", "/rolling-context off", "/rolling-context on")
_CTRL_C, _ENTER, _ESCAPE = "\x03", "\r", "\x1b"


def run() -> Iterator[str]:
    """A line an act and a size, all in one store."""
    with desk() as place:
        sessions = {size: build_session(place, size) for size in SIZES}
        for size, session in sessions.items():
            yield f"{size:,} messages"
            yield from _work(place, session)


def _work(place: Desk, session: str) -> Iterator[str]:
    with place.program("--resume", session) as terminal:
        terminal.see(READY)
        settle(terminal)
        for act in ACTS:
            terminal.type(act + _ENTER)
            keys = type_along(terminal, is_over=_never, most_seconds=SECONDS_OF_KEYS)
            yield f"  {act:<22}{_line(keys)}"
            terminal.type(_CTRL_C)  # what was typed
            settle(terminal)
        took = _milliseconds_to(terminal, "/context", "safety margin", "fate", "system prompt")
        yield f"  {'/context is there':<22}{took:7.0f} ms"


def _line(keys: KeyTimes) -> str:
    times = keys.times
    return (
        f"median {statistics.median(times):5.0f} ms, p95 {percentile(times, 0.95):5.0f} ms, "
        f"worst {max(times):5.0f} ms of {len(times)}, {keys.unseen} unseen"
    )


def _milliseconds_to(terminal: Terminal, command: str, *words: str) -> float:
    began = time.perf_counter()
    terminal.type(command + _ENTER)
    (there,) = appearances(terminal, lambda screen: all(word in screen for word in words))
    terminal.type(_ESCAPE)
    return 1_000 * (there - began)


def _never() -> bool:
    return False
