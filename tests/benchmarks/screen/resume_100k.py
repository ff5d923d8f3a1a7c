"""`--resume` of 100,000 messages on a real screen: processor time, keys, the first paint, the first request.

Each kind of session is resumed twice: as it is in a store where nobody has counted it yet, and once more.
The model is scripted and has a window of 128,000 tokens, so that nothing of a wire is in the figures.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rolling_chat.messages import Message
from tests.benchmarks.screen.figures import cpu_seconds, percentile
from tests.benchmarks.screen.keys import KeyTimes, appearances, type_along
from tests.benchmarks.screen.pace import Script
from tests.benchmarks.screen.sessions import LAST_WORDS, build_session, conversation
from tests.benchmarks.screen.windows import READY, Desk, desk, settle
from tests.support.terminal import Terminal

SIZE = 100_000
FIRST_KEY, LAST_KEY = 2.0, 7.0  # seconds after the first paint
_ANSWER = "So it is answered."
_PLANNED = "%"  # the gauge has a figure only once a request was planned


@dataclass(frozen=True, slots=True)
class Kind:
    """A session to resume: how long, with rolling on or off, and how its messages are changed."""

    name: str
    size: int = SIZE
    rolling: bool = True
    with_tools: bool = True
    is_imported: bool = False

    def messages(self) -> Iterable[Message]:
        """The messages of such a session."""
        said = conversation(self.size)
        if not self.with_tools:
            said = map(_without_tools, said)
        return (replace(one, made_by=None) for one in said) if self.is_imported else said


def _without_tools(message: Message) -> Message:
    return Message("user", "And?") if message.role == "tool" else replace(message, tool_calls=())


KINDS = (
    Kind("empty", size=0),
    Kind("rolling on"),
    Kind("rolling on, no tools", with_tools=False),
    Kind("rolling on, imported", is_imported=True),
    Kind("rolling off", rolling=False),
)


def run() -> Iterator[str]:
    """Two lines a kind and state: nothing of it was counted before, or it was resumed before."""
    yield f"{'messages':<42}{'painted':>9}{'planned':>9}{'processor':>11}   keys of seconds 2 to 7"
    for kind in KINDS:
        with desk() as place:
            script = place.home / "script.json"
            Script([_ANSWER], 0.0, str(place.home / "report.json")).write(script)
            session = build_session(place, kind.size, kind.messages(), rolling=kind.rolling)
            shown = LAST_WORDS if kind.size else "0 messages"  # its title, where there is nothing else to see
            run = _Run(place, script, session, shown)
            for state in ("uncounted", "counted"):
                kept = place.home.with_name("kept")
                shutil.copytree(place.home, kept)
                figures = run.resumed()
                _put_back(kept, place.home)
                yield f"{f'{kind.size:,}, {kind.name}, {state}':<42}{figures}   {run.keys()}"
                _put_back(kept, place.home)
                if kind.rolling:
                    yield 42 * " " + run.answered()
                _put_back(kept, place.home)
                shutil.rmtree(kept)
                run.resumed()  # counted from now on


def _put_back(kept: Path, home: Path) -> None:
    shutil.rmtree(home)
    shutil.copytree(kept, home)


@dataclass(frozen=True, slots=True)
class _Run:
    """One session to resume, which shows `shown` when it is painted."""

    place: Desk
    script: Path
    session: str
    shown: str

    def resumed(self) -> str:
        """Resume it and leave it alone until it is quiet: seconds to paint and plan, and of processor."""
        began = time.perf_counter()
        with self._open() as terminal:
            painted, planned = appearances(
                terminal, lambda screen: self.shown in screen, lambda screen: _PLANNED in _gauge(screen),
                quiet=0.01,
            )  # fmt: skip
            settle(terminal)
            taken = cpu_seconds(terminal.pid)
        return f"{painted - began:7.2f} s{planned - began:7.2f} s{taken:9.2f} s"

    def keys(self) -> str:
        """Resume it and type."""
        with self._open() as terminal:
            terminal.see(self.shown)
            until = time.perf_counter() + FIRST_KEY
            while (left := until - time.perf_counter()) > 0:
                terminal.gather(left)
            keys = type_along(terminal, is_over=lambda: False, most_seconds=LAST_KEY - FIRST_KEY)
        return _line(keys)

    def answered(self) -> str:
        """Resume it and ask at once: until the answer is there."""
        began = time.perf_counter()
        with self._open() as terminal:
            terminal.see(self.shown)
            terminal.type("What now?\r")
            (answered,) = appearances(terminal, lambda screen: _ANSWER in screen, quiet=0.01)
            taken = cpu_seconds(terminal.pid)
        return f"asked at once: answered after {answered - began:.2f} s, processor {taken:.2f} s"

    def _open(self) -> Terminal:
        return self.place.paced_chat(self.script, "--resume", self.session)


def _gauge(screen: str) -> str:
    return next((line for line in screen.splitlines() if READY in line), "")


def _line(keys: KeyTimes) -> str:
    times = keys.times
    return (
        f"p95 {percentile(times, 0.95):5.0f} ms, worst {max(times):5.0f} ms of {len(times)}, "
        f"{keys.unseen} unseen   (goal 30, 60)"
    )
