"""Memory of the whole program with a session open, beside an empty one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.benchmarks.screen.figures import megabytes
from tests.benchmarks.screen.sessions import build_session
from tests.benchmarks.screen.windows import READY, Desk, desk, settle

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
    """A line a size; litellm, which is loaded after the first paint, is in each."""
    with desk() as place:
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
