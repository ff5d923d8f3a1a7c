"""Parse summaries into lines under headings, extend them by heading, and keep them within a cap."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

from rolling_chat.context.count_memo import CountText
from rolling_chat.context.summary_grounding import OF_ANY, names_in, plain_name, specificity
from rolling_chat.search_terms import content_stems, fold

TASK, DECISIONS, FACTS, FILES, OPEN = "Task", "Decisions", "Facts", "Files", "Open"
HEADINGS = (TASK, DECISIONS, FACTS, FILES, OPEN)
"""The headings of a summary, in order; lines without a heading come first."""

OVERTAKEN = "Overtaken"
"""The heading under which an update lists lines of the earlier summary that are no longer true."""

NO_HEADING = ""

# Other names for the headings, from models and from earlier versions.
_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    TASK: (
        "tasks", "goal", "goals", "request", "requests", "user request", "user requests", "asked",
        "objective", "what the user wants", "aufgabe", "aufgaben", "tâche", "tarea", "任务", "タスク",
    ),
    DECISIONS: (
        "decision", "decided", "decisions made", "agreed", "entscheidungen", "décisions", "decisiones",
        "决定", "決定",
    ),
    FACTS: (
        "fact", "findings", "found", "key facts", "answered", "errors", "results", "details", "information",
        "exact values", "fakten", "faits", "hechos", "事实", "事実",
    ),
    FILES: (
        "file", "files read or changed", "files touched", "paths", "dateien", "fichiers", "archivos", "文件",
        "ファイル",
    ),
    OPEN: (
        "open ends", "open end", "open questions", "open issues", "open items", "pending", "still open",
        "next steps", "todo", "to do", "remaining", "offen", "offene punkte", "en suspens", "pendiente",
        "pendientes", "未决", "未解決",
    ),
    OVERTAKEN: ("no longer true", "outdated", "superseded"),
}  # fmt: skip
_BY_NAME = {name: heading for heading, names in _OTHER_NAMES.items() for name in (heading.lower(), *names)}
_DECORATION = r"[\s#*_>\-•\d.)]*"
_HEADING = re.compile(
    rf"{_DECORATION}(?P<name>[^\W\d_][^\W\d_:：]{{1,10}}(?: [^\W\d_:：]+){{0,4}})[*_#\s]*"
    r"(?:[:：][*_\s]*(?P<rest>.*))?"
)
_BULLET = re.compile(r"^(?:[-*•–]|\d{1,2}[.)])\s+")
_NOTHING = re.compile(
    r"[\W_]*(?:none|nothing|no|n/?a|not (?:applicable|available|specified|mentioned)|empty|keine?|nichts|rien"
    r"|aucune?|nada|ninguno)?(?: (?:yet|so far|at the moment|here|mentioned|specified|open))?[\W_]*",
    re.IGNORECASE,
)
_ASKED = re.compile(r"(?:the )?users? (?:ask|want|request|would like|need)", re.IGNORECASE)
_DECIDED = re.compile(r"\b(?:decided|decision|agreed|plan(?:s|ned|ning)? to)\b", re.IGNORECASE)
_NOTHING_SAID = re.compile(
    r"(?:the (?:user|assistant|conversation) (?:did|does|has|have) not"
    r"|there (?:is|are|was|were) no(?:t any)?|no)"
    r"(?: (?:yet|mention(?:ed)?|specified|specify|made?|discuss(?:ed)?|any|open|outstanding|pending"
    r"|further|new|other|specific|issues?|items?|questions?|decisions?|files?|tasks?|facts?|ends?|were"
    r"|was|are|is|have|has|been|read|or|changed?|provided?|left|found|in|the|this|conversation|messages?"
    r"|at|moment))+\W*",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")

_LONG = 240  # characters; longer lines are split, and shortened first
_MAX_LINE = 600
_MAX_LINES = 400
_LOOP_WORDS, _LOOP_SHARE = 24, 0.25  # a line with this many words and so few distinct ones is a loop
_SAME_SHARE = 0.8  # of the stems

# The worth of a line by its heading alone: less than any name in it.
_WEIGHTS = {TASK: 0.5, DECISIONS: 0.9, FACTS: 0.3, FILES: 0.3, OPEN: 0.5, NO_HEADING: 0.3}
_USED_LATER = 2.0


@dataclass(frozen=True, slots=True)
class Worth:
    """Rates how much a line is worth keeping by the names in it; those in `used`, normalized, count most."""

    used: frozenset[str] = frozenset()

    def of(self, line: str, heading: str = NO_HEADING) -> float:
        """Return the worth of a line; the harder a name is to guess, the more it counts."""
        names = {plain_name(name): name for name in names_in(line)}
        return _WEIGHTS.get(heading, 0.3) + sum(
            specificity(name) * (_USED_LATER if plain in self.used else 1.0) for plain, name in names.items()
        )


@dataclass(slots=True)
class Sections:
    """The lines of a summary by heading, oldest first; a heading may have no lines."""

    lines: dict[str, list[str]] = field(default_factory=dict)

    def add(self, heading: str, line: str) -> None:
        """Add a line, unless it is empty of content or already present; reduce repetitions within it.

        A leading heading is removed, because the next reader would parse it as one.
        """
        lines, line = self.lines.setdefault(heading, []), _without_loop(" ".join(line.split()))
        while (headed := _heading_of(line))[0]:
            line = headed[1]
        says = not (_NOTHING.fullmatch(line) or _NOTHING_SAID.fullmatch(line))
        if says and fold(line) not in map(fold, lines):
            lines.append(line)

    def of(self, heading: str) -> Sequence[str]:
        """Return the lines under a heading."""
        return self.lines.get(heading, ())

    def without(self, dropped: frozenset[str]) -> Sections:
        """Return a copy without the given lines."""
        return Sections({
            heading: [line for line in lines if line not in dropped] for heading, lines in self.lines.items()
        })  # fmt: skip

    @property
    def all(self) -> Iterator[tuple[str, str]]:
        """Every line with its heading, in writing order."""
        for heading in (NO_HEADING, *HEADINGS):
            for line in self.lines.get(heading, ()):
                yield heading, line

    @property
    def text(self) -> str:
        """The summary as it is sent."""
        return _format_lines(self.all)


def read_sections(text: str) -> Sections:
    """Parse a summary from any author: with headings in any decoration, or without headings.

    Paragraphs are split into sentences; duplicates, loops and empty statements are left out.
    """
    sections, heading = Sections(), NO_HEADING
    for raw in text.split("\n", _MAX_LINES * 4)[: _MAX_LINES * 4]:
        line = raw.strip()
        named, rest = _heading_of(line)
        if named:
            heading = named
            sections.lines.setdefault(heading, [])
            line = rest
        bare = _BULLET.sub("", line)
        # list items without headings are sorted by rule
        of = heading or (NO_HEADING if bare == line else _heading_by_rule(bare))
        for part in _parts(bare if of else line):
            if sum(map(len, sections.lines.values())) < _MAX_LINES:
                sections.add(of, part)
    return sections


def _heading_by_rule(line: str) -> str:
    if _ASKED.match(line):
        return TASK
    return DECISIONS if _DECIDED.search(line) else FACTS


def extended(old: Sections, new: Sections, touched: Iterable[str]) -> Sections:
    """Extend a summary, heading by heading, with an update.

    Lines stay word for word unless a new line says the same and more, or `new` lists them as overtaken. An
    open point stays open unless most of its words are in `touched`, the stems of the newer messages: then the
    update decides, if it lists open points.
    """
    stems, result = frozenset(touched), Sections()
    overtaken = _overtaken(old, new)
    for heading in (NO_HEADING, *HEADINGS):
        if heading in old.lines or heading in new.lines:
            result.lines.setdefault(heading, [])
        added = [_Comparable(line) for line in new.of(heading)]
        for line in old.of(heading):
            comparable = _Comparable(line)
            is_closed = heading == OPEN and OPEN in new.lines and comparable.is_about(stems)
            if not is_closed and line not in overtaken and not any(map(comparable.is_less_than, added)):
                result.add(heading, line)
        before = [_Comparable(line) for line in result.of(heading)]
        for comparable in added:
            if not any(map(comparable.is_covered_by, before)):
                result.add(heading, comparable.line)
    return without_repeated(result)


def without_repeated(sections: Sections) -> Sections:
    """Remove duplicate lines, and lines with names whose content is repeated in another line.

    Of two equivalent lines the first stays.
    """
    comparables = [_Comparable(line) for _, line in sections.all]
    by_name: dict[str, list[int]] = {}
    for index, comparable in enumerate(comparables):
        for name in comparable.names:
            by_name.setdefault(name, []).append(index)
    first = {comparable.folded: index for index, comparable in reversed(list(enumerate(comparables)))}
    dropped = {index for index, comparable in enumerate(comparables) if first[comparable.folded] != index}
    for index, comparable in enumerate(comparables):
        # an equivalent line has all of the names, including the rarest
        alike = min((by_name[name] for name in comparable.names), key=len, default=[])
        for other_index in alike:
            other = comparables[other_index]
            repeats = index != other_index and other_index not in dropped and comparable.is_covered_by(other)
            if repeats and (other_index < index or not other.is_covered_by(comparable)):
                dropped.add(index)
                break
    kept = Sections({heading: [] for heading in sections.lines})
    for index, (heading, line) in enumerate(sections.all):
        if index not in dropped:
            kept.lines[heading].append(line)
    return kept


def fitted(sections: Sections, cap: int, count: CountText, worth: Worth) -> str:
    """Write a summary of at most `cap` tokens by `count`, without the lines worth least for their length.

    First, long lines are shortened to their best sentences, and all lines to sentences with names. Among
    lines of equal worth, older ones are dropped first. Empty if not even one line fits.
    """
    lines = list(sections.all)
    if count(_format_lines(lines)) <= cap:
        return _format_lines(lines)
    lines = [(heading, _sentences_with_names(shortened(line, _LONG, worth))) for heading, line in lines]
    # divided by the square root of their tokens, because a long line may have a fact that no other has
    ranked = sorted(
        range(len(lines)),
        key=lambda index: (
            worth.of(lines[index][1], lines[index][0]) / sqrt(1 + count(lines[index][1])),
            index,
        ),
    )
    dropped, size = set[int](), count(_format_lines(lines))
    for index in ranked:
        if size <= cap:
            break
        dropped.add(index)
        size -= count(lines[index][1]) + 1
        if size <= cap:  # headings and line breaks are not counted line by line
            size = count(_format_lines(line for place, line in enumerate(lines) if place not in dropped))
    return _format_lines(line for place, line in enumerate(lines) if place not in dropped)


def shortened(line: str, limit: int, worth: Worth) -> str:
    """Shorten a line to its most valuable sentences, in their order; truncate it if none fits."""
    if len(line) <= limit:
        return line
    sentences = _sentences(line)
    best = sorted(
        range(len(sentences)), key=lambda index: (-worth.of(sentences[index]) / len(sentences[index]), index)
    )
    kept, room = set[int](), limit
    for index in best:
        if len(sentences[index]) < room:
            kept.add(index)
            room -= len(sentences[index]) + 1
    text = " ".join(sentences[index] for index in sorted(kept))
    return text or f"{line[: limit - 1].rstrip()}…"


def _sentences(line: str) -> list[str]:
    return [part.strip() for part in _SENTENCE_END.split(line) if part.strip()]


def _sentences_with_names(line: str) -> str:
    """Return the sentences of a line that contain names; the first if none does."""
    sentences = _sentences(line)
    return " ".join([part for part in sentences if names_in(part)] or sentences[:1])


def _format_lines(lines: Iterable[tuple[str, str]]) -> str:
    written: list[str] = []
    before = NO_HEADING
    for heading, line in lines:
        if heading != before:
            written.append(f"{heading}:")
            before = heading
        written.append(f"- {line}" if heading else line)
    return "\n".join(written)


def _heading_of(line: str) -> tuple[str, str]:
    """Return the heading that a line consists of or begins with, and the rest; both empty for none."""
    match = _HEADING.fullmatch(line) if line else None
    heading = _BY_NAME.get(match["name"].lower(), "") if match else ""
    return (heading, (match["rest"] or "").strip()) if match and heading else ("", "")


def _parts(line: str) -> Iterator[str]:
    """Yield a line, or its sentences if it is long."""
    if len(line) <= _LONG:
        yield line
        return
    for short in _sentences(line):
        yield short if len(short) <= _MAX_LINE else f"{short[: _MAX_LINE - 1].rstrip()}…"


def _without_loop(line: str) -> str:
    """Return a line without loops: each sentence once, or each word once if that is still a loop."""
    if _is_loop(line):
        line = " ".join(dict.fromkeys(_sentences(line)))
    if not _is_loop(line):
        return line
    words = list(dict.fromkeys(word.rstrip(".,;…") for word in line.split()))
    return " ".join(words) if len(words) > 1 else ""


def _is_loop(line: str) -> bool:
    words = line.split()
    return len(words) >= _LOOP_WORDS and len(set(words)) <= _LOOP_SHARE * len(words)


class _Comparable:
    """A line, prepared for comparison by its names and words."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.folded = fold(line)
        self.names = frozenset(map(plain_name, names_in(line)))
        self._stems = frozenset(content_stems(line))
        self._own = self._stems - OF_ANY or self._stems

    def is_covered_by(self, other: _Comparable) -> bool:
        """Return whether the other line has all names of this one and nearly all of its content."""
        if self.folded == other.folded:
            return True
        if not self._own or not self.names <= other.names:
            return False
        shared = len(self._own & other._stems) / len(self._own)
        return shared >= (_SAME_SHARE if self.names else 1.0)

    def is_less_than(self, other: _Comparable) -> bool:
        """Return whether the other line says everything in this one, and more."""
        return self.is_covered_by(other) and not other.is_covered_by(self)

    def is_about(self, stems: frozenset[str]) -> bool:
        """Return whether at least half of its words are among `stems`."""
        return bool(self._stems) and 2 * len(self._stems & stems) >= len(self._stems)


def _overtaken(old: Sections, new: Sections) -> frozenset[str]:
    """Return the lines of `old` that an update lists as overtaken; none if that is more than half of them."""
    named, lines = [_Comparable(line) for line in new.of(OVERTAKEN)], [line for _, line in old.all]
    dropped = {
        line
        for line in lines
        if named
        and any(
            one.is_covered_by(other) or other.is_covered_by(one)
            for one in (_Comparable(line),)
            for other in named
        )
    }
    return frozenset(dropped) if 2 * len(dropped) <= len(lines) else frozenset()
