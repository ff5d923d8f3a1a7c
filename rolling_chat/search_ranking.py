"""Rank search hits by the words of a message and its neighbors, and by its best line.

Half of a score is BM25 of the whole message, plus a half and a quarter of its neighbors' scores: in a
conversation the answer is often next to the words of the question. The other half is the score of the best
line alone, which finds the one line of a long result.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from rolling_chat.search_lines import Query, best_lines
from rolling_chat.search_terms import fold, words_of

# the usual constants of BM25: saturation of repeated words, and normalization by length
_SATURATION, _LENGTH = 1.2, 0.75
_SAYS_LITTLE = 12  # characters; a line this short recurs in messages that are no duplicates
_NEWER = 0.05  # bonus from the first message to the last, because corrections come later


@dataclass(frozen=True, slots=True)
class Found:
    """A search hit: the message's index, and the numbers of its best lines in `piece_lines`, from 0."""

    index: int
    lines: tuple[int, ...]
    score: float

    @property
    def line(self) -> int:
        """The number of the best line."""
        return self.lines[0] if self.lines else 0


@dataclass(frozen=True, slots=True)
class Held:
    """The count of each stem of a question in a message, and the message's number of words."""

    counts: Mapping[str, int]
    words: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics for weighing words: messages per stem, number of messages, and mean words per message."""

    holders: Mapping[str, int]
    messages: int
    words: float

    def weights(self, stems: Iterable[str]) -> dict[str, float]:
        """Return the weight of each stem; rarer stems weigh more."""
        return {one: math.log(1 + self.messages / by) for one in stems if (by := self.holders.get(one, 0))}


class Messages(Protocol):
    """The searched messages, by index."""

    def lines(self, index: int) -> Sequence[str]:
        """Return the lines of a message."""
        ...

    def title(self, index: int) -> tuple[str, float]:
        """Return the text that a message answers, and the weight of that text's words for it."""
        ...

    def asked_by(self, index: int) -> int | None:
        """Return the message that this one answers: a result's call, or a reply's request."""
        ...

    def is_prose(self, index: int) -> bool:
        """Return whether a message was said by user or model, and is no tool result."""
        ...

    def neighbor(self, index: int, distance: int) -> int | None:
        """Return the message `distance` after this one (before it if negative); None beyond the ends."""
        ...

    def age(self, index: int) -> float:
        """Return the relative position, from 0.0 for the first message to 1.0 for the last."""
        ...


@dataclass(frozen=True, slots=True)
class Ranking:
    """The weights of the ranking; benchmarks compare other values with these."""

    by_line: float = 0.5  # share of the best line in a score; the message has the rest
    neighbors: tuple[float, ...] = (0.5, 0.25)  # shares of the neighbors' scores, by distance
    candidates: int = 160  # messages scored by line, and half as many again chosen by their neighbors

    def rank(
        self, query: Query, held: Mapping[int, Held], statistics: Statistics, messages: Messages
    ) -> list[Found]:
        """Rank the messages that contain words of the question, and their neighbors, best first."""
        weights = statistics.weights(query.stems)
        own = {
            index: _bm25(one, weights, statistics.words)
            for index, one in held.items()
            if messages.is_prose(index)
        }
        spread = self._spread(own, messages)
        covering = {index: self._coverage(index, held, weights, messages) for index in held}
        chosen = {*_largest(spread, self.candidates // 2), *_largest(covering, self.candidates)}
        lines = {index: _lines_of(index, query, weights, messages) for index in chosen}
        return self._combined(spread, lines, messages)

    def _coverage(
        self, index: int, held: Mapping[int, Held], weights: Mapping[str, float], messages: Messages
    ) -> float:
        """Return the weight of the question's words in a message; a result includes those of its call."""
        stems = set(held[index].counts)
        call = None if messages.is_prose(index) else messages.asked_by(index)
        if call is not None and call in held:
            stems |= held[call].counts.keys()
        return sum(weights[stem] for stem in stems)

    def _spread(self, own: Mapping[int, float], messages: Messages) -> dict[int, float]:
        """Add to every message's score a share of the better one of its two neighbors at each distance.

        Their sum would put the first and last message at a disadvantage.
        """
        spread = dict(own)
        for distance, share in enumerate(self.neighbors, start=1):
            for index in own:
                both = (messages.neighbor(index, -distance), messages.neighbor(index, distance))
                spread[index] += share * max(own.get(one, 0.0) if one is not None else 0.0 for one in both)
        return spread

    def _combined(
        self,
        spread: Mapping[int, float],
        lines: Mapping[int, tuple[float, tuple[int, ...]]],
        messages: Messages,
    ) -> list[Found]:
        max_score = max((spread.get(index, 0.0) for index in lines), default=0.0) or 1.0
        max_line_score = max((score for score, _ in lines.values()), default=0.0) or 1.0
        found = []
        for index, (score, numbers) in lines.items():
            share = self.by_line if messages.is_prose(index) else 1.0
            both = (1 - share) * spread.get(index, 0.0) / max_score + share * score / max_line_score
            found.append(Found(index, numbers, both * (1 + _NEWER * messages.age(index))))
        return sorted(found, key=lambda one: (-one.score, -one.index))


def distinct(found: Iterable[Found], messages: Messages, limit: int) -> list[Found]:
    """Return the first `limit` hits with different lines: of several with the same line only the first."""
    kept: list[Found] = []
    seen: set[str] = set()
    for one in found:
        if len(kept) == limit:
            break
        lines = messages.lines(one.index)
        line = fold(lines[one.line]).strip() if lines else ""
        if line in seen and len(line) > _SAYS_LITTLE:
            continue
        seen.add(line)
        kept.append(one)
    return kept


def _largest(scores: Mapping[int, float], count: int) -> list[int]:
    return heapq.nlargest(count, scores, key=lambda index: (scores[index], index))


def _bm25(held: Held, weights: Mapping[str, float], usual: float) -> float:
    norm = _SATURATION * (1 - _LENGTH + _LENGTH * held.words / (usual or 1.0))
    return sum(
        weights.get(stem, 0.0) * count * (_SATURATION + 1) / (count + norm)
        for stem, count in held.counts.items()
    )


def _lines_of(
    index: int, query: Query, weights: Mapping[str, float], messages: Messages
) -> tuple[float, tuple[int, ...]]:
    """Return the best lines, and their score plus that of words found only in the answered message."""
    best = best_lines(messages.lines(index), query, weights)
    score = best.score
    if len(best.stems) < len(weights):
        text, share = messages.title(index)
        words = _title_words(text)
        score += share * sum(weights[one] for one in weights.keys() & words if one not in best.stems)
    return score, best.numbers


@lru_cache(maxsize=1024)
def _title_words(text: str) -> frozenset[str]:
    return frozenset(words_of(text))
