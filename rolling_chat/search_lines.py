"""How well a line answers a question: by the words on it, and by those that stand near it."""

from __future__ import annotations

import heapq
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import TypeAlias

from rolling_chat.search_terms import content_stems, fold, is_short, words_of

_MAX_STEMS = 24  # of a question that count
_MAX_HITS = 200  # lines of one message with the same word that are looked at
_MAX_LINES = 30  # lines of one message that are weighed

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


@dataclass(frozen=True, slots=True)
class BestLines:
    """The lines that answer best, best first, by their numbers from 0, and the stems that any line has."""

    numbers: tuple[int, ...]
    score: float
    stems: Collection[str]


def best_lines(lines: Sequence[str], query: Query, weights: Mapping[str, float]) -> BestLines:
    """Score the lines that hold words of a question."""
    words: dict[int, tuple[str, ...]] = {}  # of lines, by their numbers
    hits = _hits(lines, weights, words)
    weighed: dict[int, float] = {}
    for stem, (held_at, shares) in hits.items():
        for at, share in zip(held_at, shares, strict=True):
            weighed[at] = weighed.get(at, 0.0) + share * weights[stem]
    most = heapq.nlargest(_MAX_LINES, weighed, key=weighed.__getitem__)
    scores = {
        at: _score_line(at, hits, weights) + _bonus(lines[at], words[at], query, weights) for at in most
    }
    numbers = sorted(scores, key=lambda at: (-scores[at], at))
    return BestLines(tuple(numbers), scores[numbers[0]] if numbers else 0.0, hits.keys())


def _hits(lines: Sequence[str], weights: Mapping[str, float], words: dict[int, tuple[str, ...]]) -> _Hits:
    """By stem, the lines that hold it and how well: as the word itself, at the beginning of one, inside."""
    text = fold("\n".join(lines))
    ends = [match.start() for match in re.finditer("\n", text)] if len(lines) > 1 else []
    ends.append(len(text))
    hits: _Hits = {}
    for stem in weights:
        held_at = tuple(islice(_lines_with(stem, text, ends), _MAX_HITS))
        if held_at:
            for line in held_at:
                if line not in words:
                    words[line] = _words_on(lines[line])
            hits[stem] = held_at, tuple([_likeness(stem, words[line]) for line in held_at])
    return hits


def _lines_with(stem: str, text: str, ends: Sequence[int]) -> Iterator[int]:
    """Yield the numbers of the lines that have `stem`, a short one at the beginning of a word."""
    begins = is_short(stem)
    at = text.find(stem)
    while at >= 0:
        if begins and at and text[at - 1].isalnum():
            at = text.find(stem, at + 1)
        else:
            line = bisect_left(ends, at)
            yield line
            at = text.find(stem, ends[line])


@lru_cache(maxsize=4_096)
def _words_on(line: str) -> tuple[str, ...]:
    # the same lines are candidates again and again: who searches once asks for the like soon
    return tuple(words_of(line))


def _likeness(stem: str, words: Sequence[str]) -> float:
    if stem in words:
        return _SAME
    for word in words:
        if word.startswith(stem):
            return _BEGINS
    return _INSIDE


def _score_line(at: int, hits: _Hits, weights: Mapping[str, float]) -> float:
    score = 0.0
    for stem, (lines, shares) in hits.items():
        after = bisect_left(lines, at)
        best = 0.0
        for one in range(max(0, after - 1), min(len(lines), after + 2)):
            share = shares[one] if lines[one] == at else shares[one] * _nearness(abs(lines[one] - at))
            best = max(best, share)
        score += weights[stem] * best
    return score


def _nearness(lines: int) -> float:
    for most, share in _NEAR:
        if lines <= most:
            return share
    return _FAR


def _bonus(line: str, words: Sequence[str], query: Query, weights: Mapping[str, float]) -> float:
    """For words that stand side by side as in the question, and names written as there."""
    following = set(pairwise(words))
    adjacent = sum(
        min(weights.get(one, 0.0), weights.get(other, 0.0))
        for one, other in pairwise(query.stems)
        if (one, other) in following
    )
    if not query.names:
        return _ADJACENT * adjacent
    folded = fold(line)
    verbatim = sum(_weigh(name, weights) for name in query.names if name in folded)
    return _ADJACENT * adjacent + _VERBATIM * verbatim


def _weigh(text: str, weights: Mapping[str, float]) -> float:
    return sum(weights.get(one, 0.0) for one in set(words_of(text)))
