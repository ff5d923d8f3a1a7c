"""An answer that its server sends all at once: the longest time that the screen stands still meanwhile.

The program runs as it is, its provider and HTTP included. The last read above 300 bytes is taken for the end.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from aiohttp import web

from tests.benchmarks.screen.figures import cpu_seconds
from tests.benchmarks.screen.streaming import MIXED
from tests.benchmarks.screen.windows import READY, Desk, desk, settle
from tests.support.answers import mixed_markdown
from tests.support.servers import OpenAIServer, Raw, Reply

_ROUNDS = 5
_PAINT = 300  # bytes of a read that holds more than a cursor
_STILL = 1.5  # seconds without a paint: the answer is there
_PATIENCE = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class Burst:
    """Seconds: of the longest silence, of the whole answer, of processor."""

    silence: float
    whole: float
    cpu: float


def run() -> Iterator[str]:
    """A line a round, and the medians."""
    sent: list[float] = []

    async def write(request: web.Request, events: list[str], _whole: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        sent.append(time.perf_counter())
        await response.write("".join(events).encode())
        await response.write_eof()
        return response

    reply = Reply(mixed_markdown(MIXED))
    with desk() as place, OpenAIServer(lambda _body: Raw(reply, write)).in_thread() as server:
        yield f"{MIXED:,} characters of mixed Markdown in {len(reply.pieces()):,} pieces, sent at once"
        bursts = []
        for _ in range(_ROUNDS):
            bursts.append(_burst(place, server.api_base, sent))
            yield _line("rolling-chat", bursts[-1])
        silence = statistics.median(burst.silence for burst in bursts)
        yield f"longest silence, median of {_ROUNDS}: {1_000 * silence:.0f} ms   (goal 100)"


def _burst(place: Desk, api_base: str, sent: list[float]) -> Burst:
    sent.clear()
    with place.program("--model", "openai/gpt-4o-mini", "--api-base", api_base) as terminal:
        terminal.see(READY)
        settle(terminal)
        terminal.type("go")
        terminal.see("go")
        before = cpu_seconds(terminal.pid)
        terminal.type("\r")
        reads: list[tuple[float, int]] = []
        until = time.perf_counter() + _PATIENCE
        while time.perf_counter() < until and not (sent and _is_over(reads, sent[0])):
            data = terminal.gather(0.005)
            if data:
                reads.append((time.perf_counter(), len(data)))
        cpu = cpu_seconds(terminal.pid) - before
    last = max(at for at, size in reads if size > _PAINT)
    times = [sent[0], *(at for at, _ in reads if sent[0] < at <= last)]
    return Burst(max(after - one for one, after in pairwise(times)), last - sent[0], cpu)


def _is_over(reads: list[tuple[float, int]], began: float) -> bool:
    last = max((at for at, size in reads if size > _PAINT), default=began)
    return time.perf_counter() - max(last, began) > _STILL


def _line(name: str, burst: Burst) -> str:
    silence, whole = 1_000 * burst.silence, 1_000 * burst.whole
    return f"  {name:<16}longest silence {silence:4.0f} ms of {whole:5.0f}, {burst.cpu:.1f} s of processor"
