"""Answers that a screen may choke on: the longest stall of the event loop while each streams in."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.screen.pace import Script
from tests.benchmarks.screen.streaming import Streamed, stream
from tests.benchmarks.screen.windows import READY, desk
from tests.support.answers import hostile_answers, in_pieces

SIZE, DELTAS, INTERVAL = 100_000, 500, 0.004  # characters, pieces of each, seconds between two
GIANTS = {"one long line": 10_000_000, "a fence that never ends": 1_000_000}
PATIENCE = 60.0  # seconds


def run() -> Iterator[str]:
    """A line an answer, the giants at the end."""
    with desk() as place:
        path = place.home / "script"
        answers = [(name, text) for name, text in hostile_answers(SIZE).items()]
        answers += [(name, hostile_answers(size)[name]) for name, size in GIANTS.items()]
        over = 0
        for name, text in answers:
            script = Script(in_pieces(text, -(-len(text) // DELTAS)), INTERVAL, str(place.home / "report"))
            script.write(path)
            taken = stream(lambda: place.paced_chat(path), script, READY, patience=PATIENCE, with_keys=False)
            over += not taken.ended or taken.stall > 0.1
            yield _line(name, len(text), taken)
        yield f"{over} of {len(answers)} with a stall over 100 ms   (goal 0)"


def _line(name: str, size: int, taken: Streamed) -> str:
    stall, work = f"{1_000 * taken.stall:6.0f} ms", f"{1_000 * taken.work:4.0f} ms at a time"
    if not taken.ended:
        stall = f"not done after {PATIENCE:.0f} s"
    return f"{name:<30}{size:>12,} characters: longest stall {stall}, {work}, {taken.cpu:5.1f} s of processor"
