"""How figures are taken and put: medians, worst of all, percentiles, and what a process takes."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Seconds of processor that a process has taken, its own and the system's for it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def megabytes(pid: int, what: str = "VmRSS") -> float:
    """Memory of a process as /proc/PID/status names it: VmRSS now, VmHWM at most."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:")) / 1_024


def family(pid: int) -> Iterator[int]:
    """A process and all that it started, as far as they still run."""
    yield pid
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in tasks.read_text().split():
                yield from family(int(child))


def total(pid: int, figure: Callable[[int], float]) -> float:
    """The sum of a figure over a process and all that it started."""
    summed = 0.0
    for one in family(pid):
        with suppress(OSError, StopIteration):  # it has just ended
            summed += figure(one)
    return summed


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of them do not pass; nan where there is none."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spread(values: Sequence[float], unit: str = "ms") -> str:
    """Median and worst."""
    return f"{statistics.median(values):7.0f} {unit}, worst {max(values):6.0f}"
