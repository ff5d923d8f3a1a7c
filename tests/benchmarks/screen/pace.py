"""The other end of a stream: deltas at a given pace, and how long the event loop stood still meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

SCRIPT_VARIABLE = "SCREEN_BENCHMARK_SCRIPT"
_BEAT = 0.005  # seconds between two looks at the clock
_AFTERMATH = 1.0  # seconds after the last delta that still count: an answer is drawn once more at its end


@dataclass(frozen=True, slots=True)
class Script:
    """What is streamed, the seconds between two deltas, and where the report goes."""

    deltas: Sequence[str]
    interval: float
    report: str

    def write(self, path: Path) -> None:
        """Leave it for the program that is to be measured."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls) -> Script:
        """The script that this process was started with."""
        return cls(**json.loads(Path(os.environ[SCRIPT_VARIABLE]).read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class Report:
    """In seconds: the longest stall of the event loop, the most work it did between two looks at the
    clock (what other processes take is not in it), and how long the deltas took to be taken.
    """

    stall: float
    work: float
    seconds: float


class Pace:
    """Streams a script in the event loop of the program that is measured."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._stall = self._work = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    async def deltas(self) -> AsyncIterator[str]:
        """The deltas, each when it is due; those that are late come at once, as from a socket."""
        beat = asyncio.create_task(self._beat())
        self._tasks.add(beat)
        began = time.perf_counter()
        for number, delta in enumerate(self._script.deltas):
            await asyncio.sleep(max(0.0, began + number * self._script.interval - time.perf_counter()))
            yield delta
        self._tasks.add(asyncio.create_task(self._finish(beat, time.perf_counter() - began)))

    async def _beat(self) -> None:
        last, worked = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(_BEAT)
            now, work = time.perf_counter(), time.thread_time()
            self._stall = max(self._stall, now - last - _BEAT)
            self._work = max(self._work, work - worked)
            last, worked = now, work

    async def _finish(self, beat: asyncio.Task[None], seconds: float) -> None:
        await asyncio.sleep(_AFTERMATH)
        beat.cancel()
        path = Path(self._script.report)
        whole = path.with_suffix(".part")
        whole.write_text(json.dumps(asdict(Report(self._stall, self._work, seconds))), encoding="utf-8")
        whole.rename(path)
