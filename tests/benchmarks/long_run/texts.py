"""The texts of the world's files, each made anew from a seed: nothing of them has to be kept."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.benchmarks.long_run.words import NOUNS, OF_OBJECTS, ROUTES, VERBS, person

_CHARACTERS = 3.6  # per token, roughly


@dataclass(frozen=True, slots=True)
class FileText:
    """A file's text by what it is made from; `facts` stand somewhere in it, `note` is a line of its own."""

    kind: str
    seed: str
    tokens: int
    facts: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    def text(self) -> str:
        """Return the text."""
        rng = random.Random(self.seed)
        return _KINDS[self.kind](rng, int(self.tokens * _CHARACTERS), self.facts, self.note)


def _filled(lines: list[str], size: int, more: Iterator[str], note: str, rng: random.Random) -> list[str]:
    """Add lines until there are `size` characters; the note stands anywhere among them."""
    length = sum(map(len, lines))
    first = len(lines)
    while length < size:
        lines.append(next(more))
        length += len(lines[-1]) + 1
    if note:
        lines.insert(rng.randint(min(first, len(lines)), len(lines)), note)
    return lines


def _settings(rng: random.Random, size: int, facts: Mapping[str, str], note: str) -> str:
    """Keys with values, among others that are nobody's concern."""

    def more() -> Iterator[str]:
        number = 0
        while True:
            number += 1
            if number % 9 == 1:
                yield f"\n[{rng.choice(VERBS)}_{rng.choice(NOUNS)}_{number}]"
            key = f"{rng.choice(VERBS)}_{rng.choice(NOUNS)}_{number}"
            if rng.random() < 0.4:
                yield f"# {key}: {_sentence(rng)}"
            yield f"{key} = {rng.randrange(10_000)}"

    lines = _filled(["# settings of one service"], size, more(), f"# {note}" if note else "", rng)
    for key, value in facts.items():
        at = rng.randint(1, len(lines))
        lines.insert(at, f"{key} = {value}" if value.isdigit() else f'{key} = "{value}"')
    return "\n".join(lines) + "\n"


def _log(rng: random.Random, size: int, facts: Mapping[str, str], note: str) -> str:
    """A log with one error that comes first, and some that follow from it."""
    clock = iter(range(10**9))

    def line(level: str, said: str) -> str:
        at = next(clock)
        return f"2026-04-12T{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}Z {level:<5} {said}"

    def more() -> Iterator[str]:
        while True:
            request = f"request req-{rng.getrandbits(24):06x} {rng.choice(ROUTES)}"
            said = (
                f"{request} served in {rng.randrange(3, 90)}ms",
                f"{rng.choice(VERBS)}ed {rng.randrange(2, 900)} {rng.choice(NOUNS)}s for {_module(rng)}",
                f"cache hit for {rng.choice(NOUNS)}:{rng.randrange(9_999)}",
            )
            yield line(rng.choice(("INFO", "INFO", "DEBUG")), rng.choice(said))

    lines = _filled([], size, more(), line("INFO", note) if note else "", rng)
    if facts:
        at = rng.randint(1, len(lines))
        error = f"[{facts['module']}] {facts['code']} while serving {facts['request']}: {_sentence(rng)}"
        lines.insert(at, line("ERROR", error))
        for _ in range(rng.randint(0, 3)):
            other = (
                f"[{_module(rng)}] E{rng.randrange(1_000, 9_999)} while serving req-{rng.getrandbits(24):06x}"
            )
            lines.insert(rng.randint(at + 1, len(lines)), line("ERROR", f"{other}: upstream is gone"))
    return "\n".join(lines) + "\n"


def _source(rng: random.Random, size: int, facts: Mapping[str, str], note: str) -> str:
    """Code with the definition of a symbol."""

    def more() -> Iterator[str]:
        while True:
            name, other = rng.choice(NOUNS), rng.choice(NOUNS)
            function = f"{rng.choice(VERBS)}_{name}_{rng.randrange(10**5)}"
            yield f"def {function}({other}: str, limit: int = {rng.randrange(99)}) -> int:"
            yield f'    """{_sentence(rng).capitalize()}."""'
            yield f"    {name} = {rng.choice(VERBS)}_all({other}, limit)"
            yield f"    for item in {name}:"
            yield f"        total += item.{rng.choice(NOUNS)} * {rng.randrange(99)}"
            yield f"    return len({name}) + total\n\n"

    lines = _filled(["total = 0", ""], size, more(), f"# {note}" if note else "", rng)
    starts = [at for at, one in enumerate(lines) if one.startswith("def ")] or [len(lines)]
    lines.insert(rng.choice(starts), f"def {facts['symbol']}(frame: bytes) -> None:\n    frame.close()\n\n")
    return "\n".join(lines) + "\n"


def _measurement(rng: random.Random, size: int, facts: Mapping[str, str], note: str) -> str:
    """The table of a load test."""

    def more() -> Iterator[str]:
        while True:
            route = f"{rng.choice(ROUTES)}/{rng.choice(NOUNS)}/{rng.randrange(10**4)}"
            yield _row(f"{rng.choice(('GET', 'POST', 'PUT'))} {route}", str(rng.randrange(20, 4_000)), rng)

    head = [
        f"load test of {facts['service']}, build {rng.getrandbits(28):07x}",
        "endpoint  requests  p50  p99",
    ]
    lines = _filled(head, size, more(), note, rng)
    lines.insert(rng.randint(2, len(lines)), _row(facts["endpoint"], facts["p99"], rng))
    return "\n".join(lines) + "\n"


def _row(endpoint: str, p99: str, rng: random.Random) -> str:
    return f"{endpoint}  {rng.randrange(100, 90_000)}  p50 {rng.randrange(2, 19)} ms  p99 {p99} ms"


def _ticket(rng: random.Random, size: int, facts: Mapping[str, str], note: str) -> str:
    """A ticket with its head and a long discussion; without facts the minutes of a meeting."""

    def more() -> Iterator[str]:
        while True:
            said = " ".join(f"{_sentence(rng).capitalize()}." for _ in range(rng.randint(2, 6)))
            yield f"{person(rng)} wrote:\n{said}\n"

    head = [f"# {facts.get('ticket', 'Minutes')}: {_sentence(rng)}", ""]
    lines = _filled(head, size, more(), f"By the way, {note}." if note else "", rng)
    if facts:
        for said in (f"Reported by: {facts['reporter']}", f"Affected version: {facts['version']}"):
            lines.insert(rng.randint(2, len(lines)), said)
    return "\n".join(lines) + "\n"


def _module(rng: random.Random) -> str:
    return f"{rng.choice(NOUNS)}.{rng.choice(VERBS)}_{rng.choice(NOUNS)}"


def _sentence(rng: random.Random) -> str:
    noun, other = rng.choice(NOUNS), rng.choice(NOUNS)
    how = rng.choice(OF_OBJECTS)
    return rng.choice(
        (
            f"the {noun} does not {rng.choice(VERBS)} the {other} while the {how} {rng.choice(NOUNS)} waits",
            f"{rng.choice(VERBS)} the {other} before the {noun} is seen {rng.randrange(2, 40)} times",
            f"nobody knows why the {how} {noun} and the {other} meet here",
            f"see the {noun} of build {rng.randrange(1_000)}, which is {how} as well",
        )
    )


_KINDS: dict[str, Callable[[random.Random, int, Mapping[str, str], str], str]] = {
    "settings": _settings,
    "log": _log,
    "source": _source,
    "measurement": _measurement,
    "ticket": _ticket,
}
