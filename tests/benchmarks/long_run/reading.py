"""How the agent reads: what a sentence, a result of a tool or an answer of `recall` says, and nothing else.

It knows English: the ways to say that something is decided, to change it, and to only talk about it. It knows
no service, no person and no value but those that it reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tests.benchmarks.long_run.words import ATTRIBUTES, ODDITIES, REGIONS, WEEKDAYS
from tests.benchmarks.long_run.world import Key

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_NAMES = {name: one.key for one in ATTRIBUTES for name in (*one.names, one.key)}
_NAME = re.compile(rf"(?<![\w-])({'|'.join(sorted(map(re.escape, _NAMES), key=len, reverse=True))})(?![\w-])")
_SERVICE = re.compile(r"(?<![\w.-])(?!on-call|data-center)([a-z]+-[a-z]+(?:-\d+)?)(?![\w-])")
_BEFORE = r"(?:no longer|instead of|forget the|not|from)"
_PERSON = r"[A-Z][a-z]+ [A-Z][a-z]+"
_VALUES = {
    **dict.fromkeys(
        (one.key for one in ATTRIBUTES), re.compile(rf"(?i:({_BEFORE}) )?(?<![\w.-])(\d+)(?![\w-])")
    ),
    **dict.fromkeys(
        (one.key for one in ATTRIBUTES if one.is_role), re.compile(rf"(?i:({_BEFORE}) )?\b({_PERSON})")
    ),
    "home_region": re.compile(rf"(?i:({_BEFORE}) )?\b({'|'.join(REGIONS)})"),
    "deploy_day": re.compile(rf"(?i:({_BEFORE}) )?\b({'|'.join(WEEKDAYS)})"),
}
_TALK = re.compile(
    r"\b(suggested|might|what if|wonder|asked me|do not know|nothing is decided)\b", re.IGNORECASE
)
_ODD = {
    str(at): re.compile(
        re.escape(one.says)
        .replace("the\\ ", "[Tt]he ", 1)
        .replace(re.escape("{thing}"), r"(?P<thing>[a-z]+ [a-z]+)")
        .replace(re.escape("{value}"), rf"(?P<value>{_PERSON}|\d+|{'|'.join(WEEKDAYS)})")
    )
    for at, one in enumerate(ODDITIES)
}
_ROW = re.compile(r"^(?:\s*\d+[:-] )?((?:GET|POST|PUT) \S+) .*\bp99 (\d+) ms", re.MULTILINE)
_REQUEST = re.compile(r"ERROR .* while serving (req-[0-9a-f]+)")
_REPORTER = re.compile(rf"Reported by: ({_PERSON})")


@dataclass(frozen=True, slots=True)
class Said:
    """One fact that a text states."""

    key: Key
    value: str


@lru_cache(maxsize=20_000)
def facts_said(text: str) -> tuple[Said, ...]:
    """Return what is decided or odd in somebody's words, in order."""
    return tuple(_facts_said(text))


def _facts_said(text: str) -> Iterator[Said]:
    service = ""
    for sentence in _SENTENCE.split(text):
        yield from odd_facts(sentence)
        named = [one for one in _SERVICE.findall(sentence) if one not in REGIONS]
        service = named[0] if named else service if re.search(r"\bits\b", sentence) else ""
        if not service or sentence.endswith("?") or _TALK.search(sentence):
            continue
        about = _NAME.search(sentence)
        if about is None:
            continue
        key = _NAMES[about[1]]
        values = [
            value for before, value in _VALUES[key].findall(sentence.replace(service, "")) if not before
        ]
        if values:
            yield Said(("decided", service, key), values[0])


def odd_facts(text: str) -> Iterator[Said]:
    """Yield what is odd in a text of any kind."""
    for family, pattern in _ODD.items():
        for match in pattern.finditer(text):
            yield Said(("needle", family, match["thing"]), match["value"])


@lru_cache(maxsize=20_000)
def facts_shown(text: str, call: str) -> tuple[Said, ...]:
    """Return what the result of a call shows; `call` are its arguments, which say what the result is of."""
    return (*_facts_shown(text, call), *odd_facts(text))


def _facts_shown(text: str, call: str) -> Iterator[Said]:
    if match := re.search(r"measured/([a-z0-9-]+)\.txt", call):
        for endpoint, p99 in _ROW.findall(text):
            yield Said(("seen", "p99", match[1], endpoint), p99)
    if (match := re.search(r"logs/[\w.-]+\.log", call)) and (request := first_request(text)):
        yield Said(("seen", "request", match[0]), request)
    if (match := re.search(r"tickets/(T-\d+)\.md", call)) and (found := _REPORTER.search(text)):
        yield Said(("seen", "reporter", match[1]), found[1])


def first_request(text: str) -> str:
    """Return the request of the first error in a log, unless what is left out of it may hold another."""
    match = _REQUEST.search(text)
    return match[1] if match and not is_shortened(text[: match.start()]) else ""


def is_shortened(text: str) -> bool:
    """Whether a result says that it is not whole."""
    return "[truncated: kept" in text or "[… " in text or "[result masked" in text


def recall_id(text: str) -> str:
    """Return the id that a result names for what it lacks; empty if it names none."""
    match = re.search(r"\[recall: (r\d+)(?: lines [^\]]*)?\]", text)
    return match[1] if match else ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that `recall` has shown: its number, who wrote it, and what was shown of it."""

    number: int
    head: str
    text: str

    @property
    def is_result(self) -> bool:
        """Whether it is the result of a tool."""
        return self.head.startswith("result of")

    @property
    def facts(self) -> tuple[Said, ...]:
        """What it states."""
        return facts_shown(self.text, self.head) if self.is_result else facts_said(self.text)


_FOUND = re.compile(r"^r(\d+) ((?:user|assistant|result of).*), line [\d,]+ of [\d,]+(.*)$")
_BESIDE = re.compile(r"^  \(r(\d+) (user|assistant[^:]*): (.*)\)$")
_MENTION = re.compile(r"^r(\d+) (user|assistant): (.*)$")
_LINE = re.compile(r"^  \d+: (.*)$")
_OPENED = re.compile(r"^\[r(\d+): (.*?), [\d,]+ lines?\]$")


def hits_of(text: str) -> Iterator[Hit]:
    """Yield what an answer of `recall` shows, message by message."""
    number, head, lines = 0, "", list[str]()
    is_opened = False
    for line in text.split("\n"):
        found, opened = _FOUND.match(line), _OPENED.match(line)
        if found or opened:
            if number:
                yield Hit(number, head, "\n".join(lines))
            match: Sequence[str] = found.groups("") if found else opened.groups("") if opened else ()
            number, head, lines, is_opened = int(match[0]), " ".join(match[1:]), [], bool(opened)
        elif beside := _BESIDE.match(line) or _MENTION.match(line):
            yield Hit(int(beside[1]), beside[2], beside[3])
        elif is_opened:
            lines.append(re.sub(r"^\d+[:-] ", "", line))
        elif shown := _LINE.match(line):
            lines.append(shown[1])
    if number:
        yield Hit(number, head, "\n".join(lines))
