"""What the agent understands of a request: what is to be done, with which words, and what it has to know."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tests.benchmarks.long_run.words import ATTRIBUTES, BY_KEY, ODDITIES
from tests.benchmarks.long_run.world import Key

_NAMES = {name: one.key for one in ATTRIBUTES for name in one.names}
_NAME = "|".join(sorted(map(re.escape, _NAMES), key=len, reverse=True))
_SERVICE = r"[a-z]+-[a-z]+(?:-\d+)?"
_PATH = r"[\w/.-]+\.\w+"


@dataclass(frozen=True, slots=True)
class Need:
    """A fact that is needed, and the words to look for it with, first those of the request."""

    key: Key
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """What to do: `verb` says what, the rest with what; `needs` are facts that no file has.

    `first` is a file to read before that.
    """

    verb: str
    path: str = ""
    about: str = ""
    value: str = ""
    first: str = ""
    needs: tuple[Need, ...] = ()


def understand(text: str) -> Task | None:
    """Return what a message asks for, None where it only tells."""
    task = _understand(text)
    match = _FIRST.search(text)
    return replace(task or Task("nothing"), first=match["path"]) if match else task


def _understand(text: str) -> Task | None:
    for verb, pattern in _WAYS:
        if match := pattern.search(text):
            return _task(verb, match.groupdict())
    return _odd_question(text)


def _way(verb: str, *ways: str) -> list[tuple[str, re.Pattern[str]]]:
    parts = {
        "<path>": rf"(?P<path>{_PATH})", "<folder>": r"(?P<path>[\w/.-]*[\w-])",
        "<about>": "(?P<about>[^`]+)", "<value>": r"(?P<value>\S+?)",
        "<service>": rf"(?P<service>{_SERVICE})", "<ticket>": r"(?P<ticket>T-\d+)",
        "<name>": f"(?P<name>{_NAME})", "<other>": f"(?P<other>{_NAME})",
        "<endpoint>": r"(?P<about>(?:GET|POST|PUT) /\w+)",
    }  # fmt: skip
    made = []
    for way in ways:
        for part, pattern in parts.items():
            way = way.replace(part, pattern)  # noqa: PLW2901
        made.append((verb, re.compile(way)))
    return made


_FIRST = re.compile(rf"(?:Have a look at|Before that, read) (?P<path>{_PATH})")
_WAYS = [
    *_way("lookup", r"What is `<about>` set to in <path>\?", r"Look up `<about>` in <path>[ ,.]"),
    *_way("edit", r"Set `<about>` in <path> to <value>\.(?!\S)"),
    *_way("edit", r"Change `<about>` in <path>: it has to be <value>\.(?!\S)"),
    *_way("trace", r"Read <path>: in which module was the first error"),
    *_way("trace", r"Find the first ERROR in <path> and"),
    *_way("search", r"Where is `<about>` defined\? It is somewhere in <folder>\."),
    *_way("search", r"Find the definition of `<about>` in <folder>\."),
    *_way("measure", r"Run `cat <path>` and tell me the p99 of <endpoint>\."),
    *_way("measure", r"What is the p99 of <endpoint>\? `cat <path>` prints"),
    *_way("ticket", r"Read <path>: which version is affected\?", r"Which version is affected by <path>\?"),
    *_way("write", r"Put the <name> that we agreed on for <service> into <path> \(`<about>`\)"),
    *_way("write", r"`<about>` in <path> is out of date: write the <name> of <service> there"),
    *_way("tell", r"what is the <name> of <service>\?", r"Which <name> did we agree on for <service>\?"),
    *_way("tell", r"about <service>, what is its <name> by now\?"),
    *_way("tell", r"For the handbook of <service> I need .*: its <name> and its <other>\."),
    *_way("tell", r"What are the <name> and the <other> of <service>, as we agreed\?"),
    *_way("request", r"The log <path> is rotated away"),
    *_way("request", r"Remember <path>\? It is gone\. I need the id of the request"),
    *_way("p99", r"What was the p99 of <endpoint> when we measured <service> last\?"),
    *_way("p99", r"The load test of <service>, which p99 did <endpoint> have"),
    *_way("reporter", r"<ticket> is closed and its file is gone\. Who had reported it\?"),
    *_way("reporter", r"Whose report was <ticket>\?"),
]


def _task(verb: str, said: dict[str, str | None]) -> Task:
    path, about, value = (said.get(one) or "" for one in ("path", "about", "value"))
    service = said.get("service") or ""
    match verb:
        case "write" | "tell":
            names = filter(None, (said.get("name"), said.get("other")))
            return Task(verb, path, about, value, needs=tuple(_decided(service, name) for name in names))
        case "request":
            words = (f"first error {path} request", path)
            return Task("tell", needs=(Need(("seen", verb, path), words),))
        case "p99":
            ways = (f"{service} p99 {about}", f"load test of {service} {about}", f"measured {service}")
            return Task("tell", needs=(Need(("seen", verb, service, about), ways),))
        case "reporter":
            ticket = said["ticket"] or ""
            return Task("tell", needs=(Need(("seen", verb, ticket), (f"{ticket} reported by", ticket)),))
        case _:
            return Task(verb, path, about, value)


def _decided(service: str, name: str) -> Need:
    """What was decided may have been said by another name: if this one finds nothing, all others together."""
    key = _NAMES[name]
    others = " ".join(one for one in BY_KEY[key].names if one != name)
    return Need(("decided", service, key), (f"{service} {name}", f"{service} {others}", service))


def _odd_question(text: str) -> Task | None:
    for family, oddity in enumerate(ODDITIES):
        asks = re.escape(oddity.asks).replace(re.escape("{thing}"), "(?P<thing>[a-z]+ [a-z]+)")
        if match := re.search(asks, text):
            thing = match["thing"]
            need = Need(("needle", str(family), thing), (match[0].rstrip("?"), thing))
            return Task("tell", needs=(need,))
    return None
