"""Transcripts by the million: `replay --jobs 2` beside one process, with the memory of all processes.

`REPLAY_MESSAGES=1000000` is the full size. Both runs of a round follow each other, and each round has a
speed-up of its own. The CPU time is that of the program and of all its processes, their start included.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.benchmarks.workloads import sentence
from tests.support.program import program_environment

_MESSAGES = int(os.environ.get("REPLAY_MESSAGES", "20000"))
_ROUNDS = 5
_SETTINGS = ("--model", "gpt-4o", "--max-input-tokens", "8192")


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: seconds on the clock and of the CPU, and megabytes at a quarter of the rows and at the end."""

    seconds: float
    cpu: float
    quarter: float
    end: float


def run() -> Iterator[str]:
    """A line a run, and the medians."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "transcripts.jsonl"
        messages = write_transcripts(source, _MESSAGES)
        size = source.stat().st_size / 1_000_000
        yield f"{messages:,} messages, {size:,.0f} MB; load average {os.getloadavg()[0]:.1f}"
        rounds = []
        for number in range(1, _ROUNDS + 1):
            pair = {jobs: _measure(source, folder / f"{jobs}.jsonl", jobs) for jobs in (1, 2)}
            assert (folder / "1.jsonl").read_bytes() == (folder / "2.jsonl").read_bytes()
            rounds.append(pair)
            for jobs, one in pair.items():
                yield (
                    f"round {number}, {jobs} at a time: {one.seconds:7.1f} s, "
                    f"{messages / one.seconds:7,.0f} messages/s, CPU {1e6 * one.cpu / messages:5.0f} µs "
                    f"a message, at most {one.quarter:.0f} MB at a quarter, {one.end:.0f} MB at the end, "
                    f"load average {os.getloadavg()[0]:.1f}"
                )
        speed = [pair[1].seconds / pair[2].seconds for pair in rounds]
        cpu = [pair[2].cpu / pair[1].cpu for pair in rounds]
        growth = [one.end / one.quarter for pair in rounds for one in pair.values()]
        yield f"speed-up of 2 processes: median {median(speed):.2f} ({min(speed):.2f} to {max(speed):.2f})"
        yield f"CPU a message beside 1: median {median(cpu):.3f} ({min(cpu):.3f} to {max(cpu):.3f})"
        yield f"peak memory at the end beside a quarter: at most {max(growth):.2f}"


def write_transcripts(path: Path, messages: int) -> int:
    """Write so many messages or a few more, of an agent with four calls at a time; returns their number."""
    rng = random.Random(3)
    written = number = 0
    with path.open("w", encoding="utf-8") as file:
        while written < messages:
            number += 1
            talk = _conversation(rng)
            file.write(json.dumps({"id": f"talk{number}", "messages": talk}) + "\n")
            written += len(talk)
    return written


def _conversation(rng: random.Random) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a careful assistant."}]
    for turn in range(3):
        names = [f"c{turn}{index}" for index in range(4)]
        calls = [_call(rng, name) for name in names]
        messages.append({"role": "user", "content": sentence(rng, 12)})
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": name, "content": sentence(rng, 20)} for name in names]
        messages.append({"role": "assistant", "content": sentence(rng, 24)})
    return messages


def _call(rng: random.Random, name: str) -> dict[str, Any]:
    arguments = json.dumps({"path": f"src/{sentence(rng, 1)}/{name}.py"})
    return {"id": name, "type": "function", "function": {"name": "read_file", "arguments": arguments}}


def _measure(source: Path, output: Path, jobs: int) -> Measured:
    output.unlink(missing_ok=True)
    argv = ["replay", str(source), *_SETTINGS, "--jobs", str(jobs), "--output", str(output)]
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "rolling_chat", *argv],
        env=program_environment(output.parent),
        stdout=subprocess.DEVNULL,
    )
    samples: list[tuple[int, float]] = []
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        written = output.stat().st_size if output.exists() else 0
        samples.append((written, _peak_memory(process.pid)))
        time.sleep(0.05)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    whole = output.stat().st_size
    quarter = next(memory for written, memory in samples if written >= whole / 4)
    # at the very end the workers are gone already
    end = max(memory for _, memory in samples)
    return Measured(seconds, usage.ru_utime + usage.ru_stime, quarter, end)


def _peak_memory(pid: int) -> float:
    """The megabytes that a process and its children have had at most; 0 for those that are gone."""
    total = 0.0
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            total += int(line.split()[1]) / 1_000
    return total + sum(_peak_memory(int(child)) for child in children)
