"""How well a line answers a question: by the words on it, and by those that stand near it."""

from __future__ import annotations

import heapq
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from rolling_chat.search_terms import content_stems, fold, words_of

_MAX_STEMS = 24  # of a question that count
_MAX_HITS = 200  # occurrences of one word in one message that are looked at
_MAX_LINES = 30  # lines of one message that are weighed
_SHORT = 3  # characters; a word so short is looked for as a word, longer ones inside words too

# How much a word counts: as itself, at the beginning of another, inside of one.
_SAME, _BEGINS, _INSIDE = 1.0, 0.7, 0.4
# How much it counts so many lines from the line that is weighed, and beyond them.
_NEAR = ((0, 1.0), (2, 0.5), (8, 0.2), (30, 0.1))
_FAR = 0.05
_ADJACENT = 0.5  # of the rarer one's weight, where two words of the question stand side by side
_VERBATIM = 0.5  # of its words' weight, for a name written as in the question

_NAME = re.compile(r"[^\s\"'`(),;!?]*[\w][^\s\"'`(),;!?]*")
_NAME_LIKE = re.compile(r"[A-Za-z]\d|\d[A-Za-z.]|[a-z][A-Z]|\w[_./:@\\-]\w")

# by stem: the lines that hold it, ascending, and how well each does
_Hits: TypeAlias = dict[str, tuple[tuple[int, ...], tuple[float, ...]]]


@dataclass(frozen=True, slots=True)
class Query:
    """A question as it is looked for; `names` is what of it looks like a path, an identifier or a number."""

    stems: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, question: str) -> Query:
        """Take a question apart."""
        names = tuple(fold(name) for name in _NAME.findall(question) if _NAME_LIKE.search(name))
        return cls(tuple(content_stems(question)[:_MAX_STEMS]), names)


def best_lines(lines: Sequence[str], query: Query, weights: Mapping[str, float]) -> list[tuple[float, int]]:
    """Return the lines that hold words of the question with their scores, best first, numbered from 0."""
    hits = _hits(lines, weights)
    weighed: dict[int, float] = {}
    for stem, (held_at, shares) in hits.items():
        for at, share in zip(held_at, shares, strict=True):
            weighed[at] = weighed.get(at, 0.0) + share * weights[stem]
    most = heapq.nlargest(_MAX_LINES, weighed, key=weighed.__getitem__)
    scored = ((_score_line(at, hits, weights) + _bonus(lines[at], query, weights), at) for at in most)
    return sorted(scored, key=lambda one: (-one[0], one[1]))


def count_of(text: str, stem: str) -> int:
    """Count how often a folded text has a stem; a short one only at the beginning of a word."""
    if len(stem) > _SHORT or not stem.isascii():
        return text.count(stem)
    return sum(1 for _ in _places_of(text, stem))


def _places_of(text: str, stem: str) -> Iterator[int]:
    """Yield where `stem` stands; a short one only at the beginning of a word."""
    is_short = len(stem) <= _SHORT and stem.isascii()
    at = text.find(stem)
    while at >= 0:
        if not is_short or not at or not text[at - 1].isalnum():
            yield at
        at = text.find(stem, at + len(stem))


def _hits(lines: Sequence[str], weights: Mapping[str, float]) -> _Hits:
    """By stem, the lines that hold it and how well: as the word itself, at the beginning of one, inside."""
    text = fold("\n".join(lines))
    ends = [match.start() for match in re.finditer("\n", text)]
    hits: _Hits = {}
    words: dict[int, frozenset[str]] = {}
    for stem in weights:
        by_line: dict[int, float] = {}
        for number, at in enumerate(_places_of(text, stem)):
            if number == _MAX_HITS:
                break
            line = bisect_left(ends, at)
            if line in by_line:
                continue
            if line not in words:
                words[line] = frozenset(words_of(lines[line]))
            by_line[line] = _likeness(stem, words[line])
        if by_line:
            hits[stem] = tuple(by_line), tuple(by_line.values())
    return hits


def _likeness(stem: str, words: frozenset[str]) -> float:
    if stem in words:
        return _SAME
    return _BEGINS if any(word.startswith(stem) for word in words) else _INSIDE


def _score_line(at: int, hits: _Hits, weights: Mapping[str, float]) -> float:
    score = 0.0
    for stem, (lines, shares) in hits.items():
        after = bisect_left(lines, at)
        nearest = range(max(0, after - 1), min(len(lines), after + 2))
        score += weights[stem] * max(shares[one] * _nearness(abs(lines[one] - at)) for one in nearest)
    return score


def _nearness(lines: int) -> float:
    return next((share for most, share in _NEAR if lines <= most), _FAR)


def _bonus(line: str, query: Query, weights: Mapping[str, float]) -> float:
    """For words that stand side by side as in the question, and names written as there."""
    following = set(pairwise(words_of(line)))
    adjacent = sum(
        min(weights.get(one, 0.0), weights.get(other, 0.0))
        for one, other in pairwise(query.stems)
        if (one, other) in following
    )
    folded = fold(line)
    verbatim = sum(_weigh(name, weights) for name in query.names if name in folded)
    return _ADJACENT * adjacent + _VERBATIM * verbatim


def _weigh(text: str, weights: Mapping[str, float]) -> float:
    return sum(weights.get(one, 0.0) for one in set(words_of(text)))
