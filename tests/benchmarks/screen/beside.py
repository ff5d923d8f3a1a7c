"""The screen beside other programs: start, answers that stream, keys meanwhile, a burst, memory.

All but Textual's own `MarkdownStream`, which knows no server, get their answers from one server over HTTP.
What a program starts counts as its own. Runs are interleaved, so that a busy machine is busy for all.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from aiohttp import web

from tests.benchmarks.peers import CannotBeHadError, install
from tests.benchmarks.screen.figures import cpu_seconds, megabytes, percentile, total
from tests.benchmarks.screen.keys import FIRST, type_along
from tests.benchmarks.screen.pace import Script
from tests.benchmarks.screen.streaming import BARE_IS_READY, stream
from tests.benchmarks.screen.windows import COLUMNS, READY, ROWS, Desk, desk
from tests.support.answers import mixed_markdown, one_paragraph
from tests.support.program import program_environment
from tests.support.servers import OpenAIServer, Raw, Reply
from tests.support.terminal import Terminal

ROUNDS = 3
_MARKDOWN, _PARAGRAPH = "50 kB of Markdown", "71 kB in one paragraph"
_TEXTS = {_MARKDOWN: mixed_markdown(50_000), _PARAGRAPH: one_paragraph(71_000)}
INTERVAL = 0.0025  # seconds between two words
_QUESTION = "stream it"
_KEY = "sk-none"
_AGAIN = 0.02  # seconds until a key is typed again
_PAINT = 300  # bytes of a read that holds more than a cursor
_STILL, _PATIENCE = 1.5, 180.0  # seconds: without a paint, the answer is there; for an answer
_OURS, _TEXTUAL, _VIBE, _LLM = "rolling-chat", "MarkdownStream", "vibe 3", "llm"


@dataclass(slots=True)
class Figures:
    """What the runs of one program came to, by the name of the figure."""

    of: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        """Keep the figure of one more run."""
        self.of.setdefault(name, []).append(value)

    def median(self, name: str) -> float | None:
        """The median of a figure; None where there is none."""
        return statistics.median(self.of[name]) if name in self.of else None


# name, unit, digits behind the point
_ROWS = (
    ("start to a key", "ms", 0),
    (_MARKDOWN, "s CPU", 2),
    ("  its first process alone", "s CPU", 2),
    (_PARAGRAPH, "s CPU", 2),
    ("key p95 while it streams", "ms", 0),
    ("longest silence in a burst", "ms", 0),
    ("memory at rest", "MB", 0),
    ("memory after the answer", "MB", 0),
)


class Answers:
    """A server's script: the answer to the question, word by word or all at once."""

    def __init__(self) -> None:
        self.text, self.interval = "", INTERVAL
        self.began = self.ended = 0.0
        self._is_asked = False

    def begin(self, text: str, interval: float) -> None:
        """Answer so from now on, with so many seconds between two words."""
        self.text, self.interval, self.began, self.ended = text, interval, 0.0, 0.0
        self._is_asked = False

    def __call__(self, body: dict[str, Any]) -> Raw | Reply:
        """What the server does with a request: only the question is answered, not what asks for a title."""
        if not body.get("stream") or self._is_asked or _QUESTION not in json.dumps(body["messages"][-1]):
            return Reply("ok")
        self._is_asked = True
        return Raw(Reply(self.text), self._write)

    async def _write(
        self, request: web.Request, events: list[str], _whole: dict[str, Any]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        self.began = time.perf_counter()
        if not self.interval:
            await response.write("".join(events).encode())
        for at, event in enumerate(events if self.interval else ()):
            await asyncio.sleep(max(0.0, self.began + at * self.interval - time.perf_counter()))
            await response.write(event.encode())
        await response.write_eof()
        self.ended = time.perf_counter()
        return response


@dataclass(frozen=True, slots=True)
class Program:
    """A program that asks the server; `ready` is on its screen when it takes a question."""

    open: Callable[[], Terminal]
    ready: str
    has_screen: bool = True


def run() -> Iterator[str]:
    """A line a figure, with the ratio to each program that can run here."""
    answers = Answers()
    with desk() as place, OpenAIServer(answers, models=("scripted",)).in_thread() as server:
        programs = {_OURS: Program(lambda: _ours(place, server.api_base), READY)}
        skipped = _add_peers(programs, place, server.api_base)
        figures = {name: Figures() for name in (_OURS, _TEXTUAL, *programs)}
        for number in range(ROUNDS):
            _start(place, programs, figures)
            for name, program in programs.items():
                _measure(program, answers, figures[name])
            if not number:  # it takes most of a minute
                _stream_textual(place, figures[_TEXTUAL])
    yield from _table(figures)
    yield from (f"{name}: skipped, {reason}" for name, reason in skipped.items())


def _ours(place: Desk, api_base: str) -> Terminal:
    return place.program("--model", "openai/scripted", "--api-base", api_base, key=_KEY)


def _add_peers(programs: dict[str, Program], place: Desk, api_base: str) -> dict[str, str]:
    """Install the other programs; return those that cannot be had, and why."""
    skipped = {}
    for name, add in ((_VIBE, _vibe), (_LLM, _llm)):
        try:
            programs[name] = add(place, api_base)
        except CannotBeHadError as error:
            skipped[name] = str(error)
    return skipped


def _vibe(place: Desk, api_base: str) -> Program:
    programs, home = install("mistral-vibe>=3", place.home / "peers", least=(3, 12)), place.home / "vibe"
    home.mkdir()
    (home / "config.toml").write_text(
        'active_model = "scripted"\nenable_telemetry = false\nenable_update_checks = false\n'
        f'[[providers]]\nname = "local"\napi_base = "{api_base}"\napi_key_env_var = "LOCAL_KEY"\n'
        '[[models]]\nname = "scripted"\nprovider = "local"\nalias = "scripted"\n'
    )
    environ = {"VIBE_HOME": str(home), "LOCAL_KEY": _KEY}
    return Program(lambda: _window(place, [str(programs / "vibe"), "--trust"], environ), "(0%)")


def _llm(place: Desk, api_base: str) -> Program:
    programs, home = install("llm", place.home / "peers"), place.home / "llm"
    home.mkdir()
    model = {"model_id": "scripted", "model_name": "scripted", "api_base": api_base}
    (home / "extra-openai-models.yaml").write_text(json.dumps([model]))  # JSON is YAML
    argv = [str(programs / "llm"), "chat", "-m", "scripted"]
    environ = {"LLM_USER_PATH": str(home), "OPENAI_API_KEY": _KEY}
    return Program(lambda: _window(place, argv, environ, echo=True), "Chatting", has_screen=False)


def _window(place: Desk, argv: list[str], environ: Mapping[str, str], *, echo: bool = False) -> Terminal:
    whole = program_environment(place.home, LANG=os.environ.get("LANG") or "C.UTF-8", **environ)
    return Terminal(argv, environ=whole, folder=place.folder, columns=COLUMNS, rows=ROWS, echo=echo)


def _start(place: Desk, programs: Mapping[str, Program], figures: Mapping[str, Figures]) -> None:
    openers = {_TEXTUAL: place.bare_prompt, **{name: one.open for name, one in programs.items()}}
    for name, opener in openers.items():
        if name not in programs or programs[name].has_screen:
            figures[name].add("start to a key", 1_000 * _seconds_to_a_key(opener))


def _seconds_to_a_key(opener: Callable[[], Terminal]) -> float:
    """Type a letter again and again, for some programs drop what is typed early, until one is painted."""
    began = time.perf_counter()
    with opener() as terminal:
        while time.perf_counter() - began < _PATIENCE:
            terminal.type(FIRST)
            if FIRST.encode() in terminal.gather(_AGAIN):
                return time.perf_counter() - began
            for _ in terminal.drawn():  # what it asks the terminal is answered
                pass
    return float("nan")


def _measure(program: Program, answers: Answers, figures: Figures) -> None:
    for name in _TEXTS:
        _stream(program, answers, figures, name)
    if not program.has_screen:
        return
    answers.begin(_TEXTS[_MARKDOWN], INTERVAL)
    with _opened(program) as terminal:
        terminal.type("\r")
        keys = type_along(terminal, is_over=lambda: answers.ended > 0, most_seconds=_PATIENCE)
    figures.add("key p95 while it streams", percentile(keys.times, 0.95))
    answers.begin(_TEXTS[_MARKDOWN], 0.0)
    with _opened(program) as terminal:
        reads = _ask(terminal, answers)
    last = max(at for at, size in reads if size > _PAINT)
    times = [answers.began, *(at for at, _ in reads if answers.began < at <= last)]
    figures.add("longest silence in a burst", 1_000 * max(after - one for one, after in pairwise(times)))


def _stream(program: Program, answers: Answers, figures: Figures, name: str) -> None:
    answers.begin(_TEXTS[name], INTERVAL)
    with _opened(program) as terminal:
        if name == _MARKDOWN:
            figures.add("memory at rest", total(terminal.pid, megabytes))
        before, first = total(terminal.pid, cpu_seconds), cpu_seconds(terminal.pid)
        _ask(terminal, answers)
        figures.add(name, total(terminal.pid, cpu_seconds) - before)
        if name == _MARKDOWN:
            figures.add("  its first process alone", cpu_seconds(terminal.pid) - first)
            figures.add("memory after the answer", total(terminal.pid, megabytes))


class _opened:  # noqa: N801  # a context manager
    """A window with the question typed into it, and all that is loaded late loaded."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def __enter__(self) -> Terminal:
        self._terminal = terminal = self._program.open()
        terminal.see(self._program.ready)
        _settle(terminal)
        terminal.type(_QUESTION)
        terminal.see(_QUESTION)
        return terminal

    def __exit__(self, *_: object) -> None:
        self._terminal.__exit__(None, None, None)


def _settle(terminal: Terminal) -> None:
    """Read on until the program and what it started have nothing to do; half a minute at most."""
    before, until = -1.0, time.perf_counter() + 30.0
    while (now := total(terminal.pid, cpu_seconds)) - before > 0.05 and time.perf_counter() < until:
        before = now
        pause = time.perf_counter() + 1.0
        while (left := pause - time.perf_counter()) > 0:
            terminal.gather(left)
    for _ in terminal.drawn():
        pass


def _ask(terminal: Terminal, answers: Answers) -> list[tuple[float, int]]:
    """Send the question and read the answer to its end; return when what came, and how much."""
    terminal.type("\r")
    reads: list[tuple[float, int]] = []
    until = painted = time.perf_counter() + _PATIENCE
    while time.perf_counter() < until:
        now = time.perf_counter()
        if answers.ended and now - max(painted, answers.ended) > _STILL:
            break
        if data := terminal.gather(0.005):
            reads.append((time.perf_counter(), len(data)))
            painted = reads[-1][0] if len(data) > _PAINT else min(painted, reads[-1][0])
    return reads


def _stream_textual(place: Desk, figures: Figures) -> None:
    """Textual's own way, which gets the same words at the same pace from within its process."""
    path, report = place.home / "script", str(place.home / "report")
    for name, text in _TEXTS.items():
        script = Script(Reply(text).pieces(), INTERVAL, report)
        script.write(path)
        streamed = stream(
            lambda: place.bare_stream(path), script, BARE_IS_READY, patience=_PATIENCE, with_keys=False
        )
        figures.add(name, streamed.cpu)
    script = Script(Reply(_TEXTS[_MARKDOWN]).pieces(), INTERVAL, report)
    script.write(path)
    streamed = stream(lambda: place.bare_stream(path), script, BARE_IS_READY, patience=_PATIENCE)
    figures.add("key p95 while it streams", percentile(streamed.keys.times, 0.95))


def _table(figures: Mapping[str, Figures]) -> Iterator[str]:
    others = [name for name in figures if name != _OURS]
    yield f"{f'median of {ROUNDS}':<28}{_OURS:>14}" + "".join(f"{name:>24}" for name in others)
    for name, unit, digits in _ROWS:
        ours = figures[_OURS].median(name)
        line = f"{name:<28}{_figure(ours, unit, digits):>14}"
        for other in others:
            theirs = figures[other].median(name)
            ratio = f"  ours × {ours / theirs:4.2f}" if ours and theirs else ""
            line += f"{_figure(theirs, unit, digits) + ratio:>24}"
        yield line.rstrip()


def _figure(value: float | None, unit: str, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f} {unit}"
