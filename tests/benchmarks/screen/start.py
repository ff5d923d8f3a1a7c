"""From exec to a prompt that takes keys, beside a Textual app that has a text area and a footer."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tests.benchmarks.screen.figures import percentile, spread
from tests.benchmarks.screen.keys import FIRST, appearances, type_along
from tests.benchmarks.screen.windows import Desk, desk
from tests.support.terminal import Terminal

ROUNDS = 15
ROUNDS_OF_KEYS = 3
SECONDS_OF_KEYS = 4.0


@dataclass
class Starts:
    """Milliseconds from exec, a figure a round: until anything is painted, until a key is seen."""

    painted: list[float] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)


def run() -> Iterator[str]:
    """The two side by side; then the keys of the first seconds, when heavy parts are still being loaded."""
    with desk() as place:
        openers: dict[str, Callable[[], Terminal]] = {
            "a bare Textual app": place.bare_prompt,
            "rolling-chat": place.program,
        }
        starts = {name: Starts() for name in openers}
        for opener in openers.values():
            start(opener)  # the first of each reads the disk
        for _ in range(ROUNDS):
            for name, opener in openers.items():
                start(opener, starts[name])
        bare, ours = starts.values()
        yield f"{'exec to':<22}{'first paint':>26}{'a key is seen':>28}   of {ROUNDS} alternating"
        for name, taken in starts.items():
            yield f"{name:<22}{spread(taken.painted)}   {spread(taken.taken)}"
        ratio = statistics.median(ours.taken) / statistics.median(bare.taken)
        paired = statistics.median(one / other for one, other in zip(ours.taken, bare.taken, strict=True))
        yield f"ratio of the medians {ratio:.2f}, median of the ratios {paired:.2f}   (goal 1.2)"
        yield from _first_keys(place)


def start(opener: Callable[[], Terminal], into: Starts | None = None) -> None:
    """Start once, with a key typed at once; it is seen when the prompt has taken it."""
    began = time.perf_counter()
    with opener() as terminal:
        terminal.type(FIRST)
        painted, taken = appearances(terminal, _anything, lambda screen: FIRST in screen)
    if into is not None:
        into.painted.append(1_000 * (painted - began))
        into.taken.append(1_000 * (taken - began))


def _anything(screen: str) -> bool:
    return bool(screen.strip())


def _first_keys(place: Desk) -> Iterator[str]:
    # OpenAI's reasoning models go by litellm, which is imported in these seconds
    by_litellm = partial(place.program, "--model", "openai/gpt-5.4", key="sk-none")
    openers = {
        "a bare Textual app": place.bare_prompt,
        "rolling-chat": place.program,
        "with litellm": by_litellm,
    }
    for name, opener in openers.items():
        times: list[float] = []
        unseen = 0
        for _ in range(ROUNDS_OF_KEYS):
            with opener() as terminal:
                terminal.type(FIRST)
                terminal.see(FIRST)
                keys = type_along(terminal, is_over=lambda: False, most_seconds=SECONDS_OF_KEYS)
                times += keys.times
                unseen += keys.unseen
        yield (
            f"{name:<22}keys of the first {SECONDS_OF_KEYS:.0f} s: "
            f"median {statistics.median(times):.0f} ms, p95 {percentile(times, 0.95):.0f} ms, "
            f"worst {max(times):.0f} ms of {len(times)}, {unseen} unseen"
        )
