"""One long session against a fresh session for each task: what does a session lose that never ends?

A world is generated (`world`): files, tickets, logs, load tests, people, and settings that are decided,
changed and only talked about in passing. An agent by rule (`agent`) works in it with the program's own tools,
prompts, planner, store, summaries by rule, and calibration from the usage that its "provider" reports. It
sees nothing but the prompt of each request. A task is done when the answer names what it has to name, or the
file has the line that it has to have.

The same task in a fresh session: a new session in the same window begins with the facts that the task takes,
and nothing else. What the user had said is said again word for word, all versions of it in their order, in
one message; what a tool had shown is shown again by the turn in which it was seen, with the files of that
time. Then comes the task in the same words. So both sessions have been told the same, both may ask `recall`,
and the ratio of what they get done is what the length costs.

Through a session go the tokens of its messages, of a result of a tool no more than the cap of a result.

`LONG_RUN_TOKENS` is how many go through (10M), `LONG_RUN_WINDOWS` the windows (8000,32000,200000), of which
two run at once; `LONG_RUN_FOLDER` is where the state is kept, and from where a run that was stopped goes on.
The benchmark `long-run-80m` is one of 80 million tokens at 32,000, which runs only with a folder.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from tests.benchmarks.long_run.figures import lines_of
from tests.benchmarks.long_run.sessions import Done, LongRun, Plan

_FOLDER, _TOKENS, _WINDOWS = "LONG_RUN_FOLDER", "LONG_RUN_TOKENS", "LONG_RUN_WINDOWS"
_AT_ONCE = 2
_SLOW = Plan(window=32_000, tokens=80_000_000)


def run() -> Iterator[str]:
    """Yield the figures of every window."""
    tokens = _number(os.environ.get(_TOKENS, "10M"))
    windows = os.environ.get(_WINDOWS, "8000,32000,200000").split(",")
    plans = [Plan(window=_number(window), tokens=tokens) for window in windows]
    folder = os.environ.get(_FOLDER)
    if folder:
        yield from _run_all(plans, Path(folder))
        return
    with tempfile.TemporaryDirectory(prefix="long-run-") as made:
        yield from _run_all(plans, Path(made))


def run_slow() -> Iterator[str]:
    """Yield the figures of 80 million tokens, if there is a folder to keep the state in."""
    folder = os.environ.get(_FOLDER)
    if not folder:
        yield f"not run: set {_FOLDER} to a folder for its state; it takes hours"
        return
    yield from _run_all(
        [replace(_SLOW, tokens=_number(os.environ.get(_TOKENS, "80M")))], Path(folder) / "slow"
    )


def _run_all(plans: Sequence[Plan], folder: Path) -> Iterator[str]:
    folders = [folder / f"{plan.window}" for plan in plans]
    with ProcessPoolExecutor(_AT_ONCE, mp_context=get_context("spawn")) as pool:
        for plan, turns in zip(plans, pool.map(_run_one, plans, folders), strict=True):
            yield from lines_of(plan.window, turns)


def _run_one(plan: Plan, folder: Path) -> list[Done]:
    return asyncio.run(LongRun(plan, folder).turns())


def _number(text: str) -> int:
    """Read `80M`, `200k` or `32000`."""
    factor = {"k": 1_000, "M": 1_000_000}.get(text[-1:], 1)
    return int(float(text.rstrip("kM")) * factor)
