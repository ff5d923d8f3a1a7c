"""Answers that stream: processor time, stalls of the event loop, and keys typed meanwhile.

The program runs as it is but for the model, whose deltas come from a script: litellm's share is in
neither figure. Beside it Textual's own `MarkdownStream` takes the same deltas at the same pace.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.benchmarks.screen.figures import cpu_seconds, percentile
from tests.benchmarks.screen.keys import KeyTimes, type_along
from tests.benchmarks.screen.pace import Report, Script
from tests.benchmarks.screen.windows import READY, desk, settle
from tests.support.answers import GIANTS, in_pieces, mixed_markdown
from tests.support.terminal import Terminal

MIXED, PIECE, INTERVAL = 50_000, 20, 0.005  # characters, characters a delta, seconds between deltas
GIANT, GIANT_PIECE = 1_000_000, 200
ROUNDS = 2
PATIENCE = 60.0  # seconds for the program
TEXTUALS_PATIENCE, WITH_GIANTS = 40.0, 15.0  # seconds for what is known to take minutes


@dataclass(frozen=True, slots=True)
class Streamed:
    """Seconds of processor, of the longest stall, of the most work at a time (`pace.Report`); `ended`
    False where patience did first.
    """

    cpu: float
    stall: float
    work: float
    keys: KeyTimes
    ended: bool


def run() -> Iterator[str]:
    """The mixed text without keys, for the processor; with keys, for the keys; then the giants with keys."""
    with desk() as place:
        script = Script(in_pieces(mixed_markdown(MIXED), PIECE), INTERVAL, str(place.home / "report"))
        path = place.home / "script"
        bare, ours = (lambda: place.bare_stream(path)), (lambda: place.paced_chat(path))
        script.write(path)
        pairs = []
        for _ in range(ROUNDS):
            theirs = stream(bare, script, BARE_IS_READY, patience=TEXTUALS_PATIENCE, with_keys=False)
            pairs.append((theirs, stream(ours, script, READY, patience=PATIENCE, with_keys=False)))
        apart = f"{len(script.deltas):,} deltas, {1_000 * INTERVAL:.0f} ms apart"
        yield f"{MIXED:,} characters of mixed Markdown in {apart}, without keys"
        yield from (_line(name, one) for pair in pairs for name, one in zip(_NAMES, pair, strict=True))
        cpu = statistics.median(one.cpu / other.cpu for other, one in pairs)
        yield f"processor: {cpu:.2f} of MarkdownStream's   (goal 0.33)"
        yield "the same with keys"
        yield _line(_NAMES[0], stream(bare, script, BARE_IS_READY, patience=TEXTUALS_PATIENCE))
        yield _line(_NAMES[1], stream(ours, script, READY, patience=PATIENCE), goals=True)
        for name, make in GIANTS.items():
            script = replace(script, deltas=in_pieces(make(GIANT), GIANT_PIECE))
            script.write(path)
            yield f"{GIANT:,} characters as one {name} in {len(script.deltas):,} deltas"
            yield _line(_NAMES[0], stream(bare, script, BARE_IS_READY, patience=WITH_GIANTS))
            yield _line(_NAMES[1], stream(ours, script, READY, patience=PATIENCE), goals=True)


_NAMES = ("MarkdownStream", "rolling-chat")
BARE_IS_READY = "Answer"


def stream(
    opener: Callable[[], Terminal], script: Script, ready: str, *, patience: float, with_keys: bool = True
) -> Streamed:
    """Open a window, send a message, and follow the answer to a second after its end."""
    report = Path(script.report)
    report.unlink(missing_ok=True)
    with opener() as terminal:
        terminal.see(ready)
        settle(terminal)
        terminal.type("go")
        terminal.see("go")
        before = cpu_seconds(terminal.pid)
        terminal.type("\r")
        if with_keys:
            keys = type_along(terminal, is_over=report.exists, most_seconds=patience)
        else:
            keys = KeyTimes()
            until = time.perf_counter() + patience
            while not report.exists() and time.perf_counter() < until:
                terminal.gather(0.05)
        cpu = cpu_seconds(terminal.pid) - before
    if not report.exists():
        return Streamed(cpu, float("nan"), float("nan"), keys, ended=False)
    told = Report(**json.loads(report.read_text()))
    return Streamed(cpu, told.stall, told.work, keys, ended=True)


def _line(name: str, streamed: Streamed, *, goals: bool = False) -> str:
    times = streamed.keys.times
    stall = f"{1_000 * streamed.stall:6.0f} ms" if streamed.ended else "        ?"
    parts = [f"  {name:<16}{streamed.cpu:6.1f} s of processor, longest stall {stall}"]
    if goals:
        parts.append(f" (goal 50; most work at a time {1_000 * streamed.work:.0f})")
    if times or streamed.keys.unseen:
        worst = max(times, default=float("nan"))
        parts.append(
            f", keys p95 {percentile(times, 0.95):5.0f} ms{' (goal 30)' if goals else ''}, "
            f"worst {worst:5.0f} of {len(times)}, {streamed.keys.unseen} unseen"
        )
    if not streamed.ended:
        parts.append(", stopped there")
    return "".join(parts)
