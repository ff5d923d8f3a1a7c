"""A world that changes while somebody works in it: services, decisions, people, tickets, logs, odd things.

`World.turns` is what its user says, turn after turn without an end, made from a seed: facts in passing, some
of which change later or are only talked about, and a task. A task of the kind "within" needs nothing from
before; the others need what was said, or what a tool showed, at a random distance. What a tool showed is gone
from the files by then. A fact is asked for once for every time that it is stated.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tests.benchmarks.long_run import sentences
from tests.benchmarks.long_run.texts import FileText
from tests.benchmarks.long_run.words import (
    ATTRIBUTES,
    BY_KEY,
    HUES,
    NOUNS,
    OBJECTS,
    ODDITIES,
    OF_OBJECTS,
    ROUTES,
    THINGS,
    VERBS,
    person,
)

WITHIN = "within"
KINDS = (WITHIN, "decided", "changed", "two facts", "seen", "needle said", "needle shown")
_TELLS, _MUSES, _TASKS, _NOTES, _MINUTES = 0.6, 0.3, 0.9, 0.25, 0.7  # how often a turn has such a thing
_CHANGES = 0.45  # of what is told
_PAIRS = 0.3  # of questions on what was decided
_FACTS = {"decided": 5, "seen": 3, "needle": 2}  # what tasks are about that need one, by weight
_MAX_VERSIONS = 4  # that a fresh session is told of

Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a fact is from: what was said in a turn, or if nothing was, what its tools showed."""

    turn: int
    said: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user says, and what is there by then; `kind` is empty where nothing is to be done.

    `answer` is what the answer has to name, `edit` the path, the key and the value that a file has to have.
    `sources` are where the facts are from that it takes, `stated` is the earliest turn that has to be known.
    """

    number: int
    text: str
    kind: str = ""
    files: Mapping[str, FileText] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    answer: tuple[str, ...] = ()
    edit: tuple[str, str, str] | None = None
    sources: tuple[Source, ...] = ()
    stated: int = 0


@dataclass(slots=True)
class _Fact:
    """Something that may be asked for: by its key, with its value, and where it was stated."""

    key: Key
    value: str
    sources: list[Source]

    @property
    def stated(self) -> int:
        return self.sources[-1].turn


@dataclass(slots=True)
class World:
    """`output` is the size of a long output of a tool, in tokens."""

    seed: int
    output: int = 6_000
    past: list[Turn] = field(default_factory=list)
    _pending: dict[Key, _Fact] = field(default_factory=dict)  # by the time they were stated last
    _asked: dict[Key, _Fact] = field(default_factory=dict)
    _settings: dict[str, dict[str, str]] = field(default_factory=dict)  # of services, as in their files
    _things: set[Key] = field(default_factory=set)
    _tickets: int = 100

    def turns(self) -> Iterator[Turn]:
        """Yield what the user says; the first turn is a greeting."""
        self.past = [Turn(0, sentences.GREETING)]
        yield self.past[0]
        while True:
            self.past.append(self._turn(len(self.past), random.Random(f"{self.seed} {len(self.past)}")))
            yield self.past[-1]

    def before_fresh(self, turn: Turn) -> list[Turn]:
        """Return what a fresh session begins with: the facts that the task takes, as they were stated.

        What was said is said again in the same words, in one message; what was shown is shown again.
        """
        before: list[Turn] = []
        for source in sorted(turn.sources, key=lambda one: one.turn):
            if not source.said:
                before.append(self.past[source.turn])
            elif before and before[-1].text.startswith(sentences.AGAIN):
                before[-1] = replace(before[-1], text=f"{before[-1].text} {source.said}")
            else:
                before.append(Turn(source.turn, f"{sentences.AGAIN} {source.said}"))
        return before

    def _turn(self, number: int, rng: random.Random) -> Turn:
        said = [rng.choice(sentences.CHATTER) for _ in range(rng.randint(0, 2))]
        task = self._task(number, rng) if rng.random() < _TASKS else Turn(number, "")
        busy = {source.turn for source in task.sources}
        if rng.random() < _TELLS or not task.kind:
            said.append(self._tell(number, rng, busy))
        if rng.random() < _MUSES:
            said.append(self._muse(rng))
        if rng.random() < _MINUTES:
            path = f"minutes/{number}.md"
            task = replace(task, files={**task.files, path: self._file("ticket", path, number, {})})
            said.append(rng.choice(sentences.FIRST).format(path))
        if rng.random() < _NOTES:
            task = self._note(task, said, rng)
        rng.shuffle(said)
        parts = [" ".join(said), task.text]
        if rng.random() < 0.3:
            parts.reverse()
        return replace(task, text="\n\n".join(filter(None, parts)))

    # -- what is told

    def _tell(self, number: int, rng: random.Random, busy: set[int]) -> str:
        """State a decision: a new one, or another value for one that stood, but not for what is asked now."""
        known = [
            fact
            for fact in (*self._pending.values(), *self._asked.values())
            if fact.key[0] == "decided"
            and fact.stated < number
            and not {one.turn for one in fact.sources} & busy
        ]
        if known and rng.random() < _CHANGES:
            fact = rng.choice(known)
            _, service, key = fact.key
            old, values = fact.value, (BY_KEY[key].choose(rng) for _ in iter(int, 1))
            value = next(one for one in values if one != old)
            said = sentences.fill(
                rng, sentences.CHANGES, service, rng.choice(BY_KEY[key].names), value, old=old
            )
            self._state(fact.key, value, Source(number, said), fact.sources)
            return said
        service, key = self._new_decision(number, rng)
        value = BY_KEY[key].choose(rng)
        said = sentences.fill(rng, sentences.STATED, service, rng.choice(BY_KEY[key].names), value)
        self._state(("decided", service, key), value, Source(number, said))
        return said

    def _new_decision(self, number: int, rng: random.Random) -> tuple[str, str]:
        while True:
            service, key = self._service(number, rng), rng.choice(ATTRIBUTES).key
            if not {("decided", service, key)} & (self._pending.keys() | self._asked.keys()):
                return service, key

    def _muse(self, rng: random.Random) -> str:
        """Talk about a decision that may stand, and change nothing."""
        known = [key for key in (*self._pending, *self._asked) if key[0] == "decided"]
        if not known:
            return rng.choice(sentences.CHATTER)
        _, service, key = rng.choice(known)
        name, value = rng.choice(BY_KEY[key].names), BY_KEY[key].choose(rng)
        return sentences.fill(rng, sentences.MUSINGS, service, name, value)

    def _note(self, turn: Turn, said: list[str], rng: random.Random) -> Turn:
        """State something odd, in words or in a file that the turn is about."""
        family = rng.randrange(len(ODDITIES))
        thing = f"{rng.choice(OF_OBJECTS)} {rng.choice(OBJECTS)}"
        key = ("needle", str(family), thing)
        if key in self._things:
            return turn
        self._things.add(key)
        value = ODDITIES[family].choose(rng)
        text = ODDITIES[family].says.format(thing=thing, value=value)
        if turn.files and rng.random() < 0.6:
            path = rng.choice(sorted(turn.files))
            self._state(key, value, Source(turn.number))
            return replace(turn, files={**turn.files, path: replace(turn.files[path], note=text)})
        sentence = f"{text[0].upper()}{text[1:]}."
        self._state(key, value, Source(turn.number, sentence))
        said.append(sentence)
        return turn

    def _state(self, key: Key, value: str, source: Source, before: Sequence[Source] = ()) -> None:
        self._asked.pop(key, None)
        self._pending.pop(key, None)
        self._pending[key] = _Fact(key, value, [*before, source][-_MAX_VERSIONS:])

    # -- what is asked for

    def _task(self, number: int, rng: random.Random) -> Turn:
        if rng.random() < 0.5:
            kinds = [kind for kind, weight in _FACTS.items() for _ in range(weight)]
            fact = self._known(rng.choice(kinds), number, rng)
            if fact is not None:
                return self._question(fact, number, rng)
        makers = (self._lookup, self._edit, self._trace, self._search, self._measure, self._ticket)
        return rng.choice(makers)(number, rng)

    def _known(self, kind: str, number: int, rng: random.Random) -> _Fact | None:
        """Return a fact that was not asked for since it was stated, at a distance of any order."""
        facts = [fact for fact in self._pending.values() if fact.key[0] == kind]
        wanted = number - math.exp(rng.uniform(0, math.log(number + 1)))
        return min(facts, key=lambda fact: abs(fact.stated - wanted), default=None)

    def _question(self, fact: _Fact, number: int, rng: random.Random) -> Turn:
        self._asked[fact.key] = self._pending.pop(fact.key)
        turn = Turn(number, "", answer=(fact.value,), sources=tuple(fact.sources), stated=fact.stated)
        match fact.key:
            case ("decided", service, key):
                return self._decided(turn, fact, service, key, rng)
            case ("needle", family, thing):
                kind = "needle said" if fact.sources[0].said else "needle shown"
                return replace(turn, text=ODDITIES[int(family)].asks.format(thing=thing), kind=kind)
            case (_, asked, *of):
                text = rng.choice(sentences.SEEN[asked]).format(*of)
                return replace(turn, text=text, kind="seen", gone=self._gone(fact))
        raise AssertionError(fact.key)

    def _gone(self, fact: _Fact) -> tuple[str, ...]:
        """The files that showed a fact: they are deleted before it is asked for."""
        return tuple(path for source in fact.sources for path in self.past[source.turn].files)

    def _decided(self, turn: Turn, fact: _Fact, service: str, key: str, rng: random.Random) -> Turn:
        name = rng.choice(BY_KEY[key].names)
        kind = "changed" if len(fact.sources) > 1 else "decided"
        others = [one for one in self._pending.values() if one.key[:2] == ("decided", service)]
        if others and rng.random() < _PAIRS:
            other = rng.choice(others)
            self._asked[other.key] = self._pending.pop(other.key)
            text = rng.choice(sentences.BOTH).format(service, name, rng.choice(BY_KEY[other.key[2]].names))
            return replace(
                turn, text=text, kind="two facts", answer=(fact.value, other.value),
                sources=(*fact.sources, *other.sources), stated=min(fact.stated, other.stated),
            )  # fmt: skip
        if rng.random() < 0.5 and not BY_KEY[key].is_role:
            path, file = self._settings_file(service, turn.number)
            self._settings[service][key] = fact.value
            asked = rng.choice(sentences.AS_AGREED).format(service, name, path, key)
            return replace(
                turn, text=asked, kind=kind, answer=(), files={path: file}, edit=(path, key, fact.value)
            )
        return replace(turn, text=rng.choice(sentences.REMIND).format(service, name), kind=kind)

    # -- tasks that need nothing from before

    def _lookup(self, number: int, rng: random.Random) -> Turn:
        service = self._service(number, rng)
        path, text = self._settings_file(service, number)
        key, value = f"{rng.choice(VERBS)}_{rng.choice(NOUNS)}_limit", str(rng.randrange(10_000))
        text = replace(text, facts={**text.facts, key: value})
        asked = rng.choice(sentences.LOOKUP).format(key, path)
        return Turn(number, asked, WITHIN, files={path: text}, answer=(value,))

    def _edit(self, number: int, rng: random.Random) -> Turn:
        service = self._service(number, rng)
        path, text = self._settings_file(service, number)
        key, value = f"{rng.choice(VERBS)}_{rng.choice(NOUNS)}_limit", str(rng.randrange(10_000))
        text = replace(text, facts={**text.facts, key: str(rng.randrange(10_000, 20_000))})
        asked = rng.choice(sentences.EDIT).format(key, path, value)
        return Turn(number, asked, WITHIN, files={path: text}, edit=(path, key, value))

    def _trace(self, number: int, rng: random.Random) -> Turn:
        path = f"logs/{self._service(number, rng)}-{number}.log"
        module = f"{rng.choice(NOUNS)}.{rng.choice(VERBS)}_{rng.choice(NOUNS)}"
        facts = {"module": module, "code": f"E{rng.randrange(1_000, 9_999)}"}
        facts["request"] = f"req-{rng.getrandbits(24):06x}"
        self._state(("seen", "request", path), facts["request"], Source(number))
        text = self._file("log", path, number, facts)
        asked = rng.choice(sentences.TRACE).format(path)
        return Turn(number, asked, WITHIN, files={path: text}, answer=(facts["module"], facts["code"]))

    def _search(self, number: int, rng: random.Random) -> Turn:
        symbol = f"{rng.choice(VERBS)}_{rng.choice(NOUNS)}_{number}"
        folder = f"src/{self._service(number, rng)}"
        path = f"{folder}/{rng.choice(NOUNS)}_{number}.py"
        text = self._file("source", path, number, {"symbol": symbol})
        asked = rng.choice(sentences.SEARCH).format(symbol, folder)
        return Turn(number, asked, WITHIN, files={path: text}, answer=(path,))

    def _measure(self, number: int, rng: random.Random) -> Turn:
        service = self._service(number, rng)
        path = f"measured/{service}.txt"
        endpoint, p99 = f"{rng.choice(('GET', 'POST'))} {rng.choice(ROUTES)}", str(rng.randrange(20, 4_000))
        key = ("seen", "p99", service, endpoint)
        self._state(key, p99, Source(number))
        text = self._file("measurement", path, number, {"service": service, "endpoint": endpoint, "p99": p99})
        asked = rng.choice(sentences.MEASURE).format(path, endpoint)
        return Turn(number, asked, WITHIN, files={path: text}, answer=(p99,))

    def _ticket(self, number: int, rng: random.Random) -> Turn:
        self._tickets += rng.randint(1, 9)
        ticket, version = (
            f"T-{self._tickets}",
            f"{rng.randrange(1, 9)}.{rng.randrange(40)}.{rng.randrange(20)}",
        )
        path, reporter = f"tickets/{ticket}.md", person(rng)
        self._state(("seen", "reporter", ticket), reporter, Source(number))
        facts = {"ticket": ticket, "reporter": reporter, "version": version}
        text = self._file("ticket", path, number, facts)
        return Turn(
            number, rng.choice(sentences.TICKET).format(path), WITHIN, files={path: text}, answer=(version,)
        )

    def _service(self, number: int, rng: random.Random) -> str:
        """Return a service; there are more of them as time goes by."""
        at = rng.randrange(8 + number // 10)
        hue, thing = HUES[at * 7 % len(HUES)], THINGS[(at + at // len(HUES) * 11) % len(THINGS)]
        return f"{hue}-{thing}" if at < len(HUES) * len(THINGS) // 2 else f"{hue}-{thing}-{at}"

    def _settings_file(self, service: str, number: int) -> tuple[str, FileText]:
        path = f"services/{service}/settings.toml"
        held = self._settings.setdefault(service, {})
        for attribute in ATTRIBUTES:
            if not attribute.is_role:
                held.setdefault(attribute.key, attribute.choose(random.Random(f"{service} {attribute.key}")))
        return path, self._file("settings", path, number, dict(held))

    def _file(self, kind: str, path: str, number: int, facts: Mapping[str, str]) -> FileText:
        seed = f"{self.seed} {number} {path}"
        size = int(self.output * random.Random(seed).uniform(0.5, 1.5))
        return FileText(kind, seed, size, facts)
