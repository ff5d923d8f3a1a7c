"""Score how well a line answers a question, by the words on it and near it."""

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

_MAX_STEMS = 24  # stems of a question that count
_MAX_HITS = 200  # lines of one message examined for the same word
_MAX_LINES = 30  # lines of one message that are scored

# The weight of a stem that equals a word, begins one, or is inside one.
_SAME, _BEGINS, _INSIDE = 1.0, 0.7, 0.4
# The weight of a word by its distance, in lines, from the scored line; and beyond that.
_NEAR = ((0, 1.0), (2, 0.5), (8, 0.2), (30, 0.1))
_FAR = 0.05
_ADJACENT = 0.5  # bonus for two adjacent words of the question, as a share of the rarer one's weight
_VERBATIM = 0.5  # bonus for a name spelled as in the question, as a share of its words' weight

_NAME = re.compile(r"[^\s\"'`(),;!?]*[\w][^\s\"'`(),;!?]*")
_NAME_LIKE = re.compile(r"[A-Za-z]\d|\d[A-Za-z.]|[a-z][A-Z]|\w[_./:@\\-]\w")

# by stem: the lines that contain it, ascending, and the weight of each
_Hits: TypeAlias = dict[str, tuple[tuple[int, ...], tuple[float, ...]]]


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed question; `names` are its words that look like a path, an identifier or a number."""

    stems: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, question: str) -> Query:
        """Parse a question."""
        names = tuple(fold(name) for name in _NAME.findall(question) if _NAME_LIKE.search(name))
        return cls(tuple(content_stems(question)[:_MAX_STEMS]), names)


@dataclass(frozen=True, slots=True)
class BestLines:
    """The best lines by number from 0, best first, the best score, and the stems that occur on any line."""

    numbers: tuple[int, ...]
    score: float
    stems: Collection[str]


def best_lines(lines: Sequence[str], query: Query, weights: Mapping[str, float]) -> BestLines:
    """Score the lines that contain words of a question."""
    words: dict[int, tuple[str, ...]] = {}  # by line number
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
    """Return the lines that contain each stem, with weights; add the words of those lines to `words`."""
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
    """Yield the numbers of lines that contain `stem`; a short stem must begin a word."""
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
    # similar searches tend to follow each other, with the same candidate lines
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
    """Return the bonus for words adjacent as in the question, and for names spelled as there."""
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
