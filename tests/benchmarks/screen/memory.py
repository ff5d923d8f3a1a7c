"""Memory of the whole program: what it takes by itself, after an answer, and with a session open."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.screen.figures import megabytes
from tests.benchmarks.screen.pace import Script
from tests.benchmarks.screen.sessions import build_session
from tests.benchmarks.screen.windows import READY, Desk, desk, settle
from tests.support.answers import in_pieces, mixed_markdown
from tests.support.terminal import Terminal

_ANSWER, _PIECE, _INTERVAL = 50_000, 20, 0.005  # characters, characters a delta, seconds between deltas
_PATIENCE = 120.0  # seconds for the answer
SIZES = (0, 10_000, 100_000)
PAGES = 200
_PAGE_UP, _PAGE_DOWN, _CTRL_HOME, _CTRL_END = "\x1b[5~", "\x1b[6~", "\x1b[1;5H", "\x1b[1;5F"


@dataclass(frozen=True, slots=True)
class Memory:
    """Megabytes: when everything is loaded, after reading up and down, and at most."""

    open: float
    read: float
    most: float


def run() -> Iterator[str]:
    """What an empty session takes by stages; then a line a size, all that is loaded late in it."""
    with desk() as place:
        yield from _stages(place)
        sessions = {size: build_session(place, size) for size in SIZES}
        yield f"{'messages':>9}{'open':>10}{f'{PAGES} pages read':>18}{'at most':>12}"
        empty: Memory | None = None
        for size, session in sessions.items():
            memory = _measure(place, session)
            line = f"{size:>9,}{memory.open:>7.0f} MB{memory.read:>15.0f} MB{memory.most:>9.0f} MB"
            empty = empty or memory
            more = memory.open - empty.open, memory.read - empty.read, memory.most - empty.most
            above = ", ".join(f"{one:+.0f}" for one in more)
            yield f"{line}   {above} MB against the empty one   (goal +60)" if size else line


def _measure(place: Desk, session: str) -> Memory:
    with place.program("--resume", session) as terminal:
        terminal.see(READY)
        settle(terminal)
        opened = megabytes(terminal.pid)
        for key in (*[_PAGE_UP] * PAGES, _CTRL_HOME, *[_PAGE_DOWN] * PAGES, _CTRL_END):
            terminal.type(key)
            terminal.gather(0.03)
        settle(terminal)
        return Memory(opened, megabytes(terminal.pid), megabytes(terminal.pid, "VmHWM"))


def _stages(place: Desk) -> Iterator[str]:
    """A line a stage, the model scripted: with it neither litellm nor HTTP is loaded."""
    script = Script(in_pieces(mixed_markdown(_ANSWER), _PIECE), _INTERVAL, str(place.home / "report"))
    path = place.home / "script"
    script.write(path)
    yield f"{'empty session, scripted model':<42}{'at rest':>10}{'at most':>12}"
    yield _at_rest("a bare Textual app", place.bare_prompt)
    # of such a model nobody has the tokenizer
    yield _at_rest(
        "open, no encoding needed", lambda: place.paced_chat(path, model="openai/scripted"), goal="80"
    )
    with place.paced_chat(path) as terminal:
        terminal.see(READY)
        settle(terminal)
        yield _stage("open, o200k loaded", terminal, goal="150")
        _stream(terminal, Path(script.report))
        settle(terminal)
        yield _stage(f"after an answer of {_ANSWER // 1_000} kB", terminal, goal="180")


def _at_rest(name: str, opener: Callable[[], Terminal], goal: str = "") -> str:
    with opener() as terminal:
        if goal:
            terminal.see(READY)
        settle(terminal)
        return _stage(name, terminal, goal)


def _stage(name: str, terminal: Terminal, goal: str) -> str:
    line = f"{name:<42}{megabytes(terminal.pid):>7.0f} MB{megabytes(terminal.pid, 'VmHWM'):>9.0f} MB"
    return f"{line}   (goal {goal} at rest)" if goal else line


def _stream(terminal: Terminal, report: Path) -> None:
    report.unlink(missing_ok=True)
    terminal.type("go")
    terminal.see("go")
    terminal.type("\r")
    until = time.perf_counter() + _PATIENCE
    while not report.exists() and time.perf_counter() < until:
        terminal.gather(0.05)
