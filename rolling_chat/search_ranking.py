"""The order of search hits: by the words of a message and of its neighbors, and by its best line.

Half of a score is BM25 of the whole message, with a half and a quarter of what its neighbors have: in a
conversation the answer often stands beside the words that are asked for. The other half is how well its best
line answers by itself, which finds the one line of a long result.
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

# of BM25, as everybody has them: how soon more of a word counts no more, and how much a long text counts less
_SATURATION, _LENGTH = 1.2, 0.75
_SAYS_LITTLE = 12  # characters; a line so short is the same in many messages that are not
_NEWER = 0.05  # from the first message to the last: what is corrected is corrected later


@dataclass(frozen=True, slots=True)
class Found:
    """A search hit: the message's index, and the numbers of its best lines in `piece_lines`, from 0."""

    index: int
    lines: tuple[int, ...]
    score: float

    @property
    def line(self) -> int:
        """The line that answers best."""
        return self.lines[0] if self.lines else 0


@dataclass(frozen=True, slots=True)
class Held:
    """What a message has of a question: how often each stem, and how many words it has in all."""

    counts: Mapping[str, int]
    words: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """What weighs words: in how many messages each stem is, how many there are, and their usual length."""

    holders: Mapping[str, int]
    messages: int
    words: float

    def weights(self, stems: Iterable[str]) -> dict[str, float]:
        """Return how much each stem says: the rarer it is, the more."""
        return {one: math.log(1 + self.messages / by) for one in stems if (by := self.holders.get(one, 0))}


class Messages(Protocol):
    """The messages that hits are of."""

    def lines(self, index: int) -> Sequence[str]:
        """The lines of a message."""
        ...

    def title(self, index: int) -> tuple[str, float]:
        """What a message answers, and how much a word of that counts for it."""
        ...

    def asked_by(self, index: int) -> int | None:
        """The message with the call that a result answers, or the request that a reply does."""
        ...

    def is_prose(self, index: int) -> bool:
        """Whether a message is what somebody said, and no tool's result."""
        ...

    def neighbor(self, index: int, distance: int) -> int | None:
        """The message so many after this one (before it where negative), None beyond the ends."""
        ...

    def age(self, index: int) -> float:
        """From 0.0 for the first message to 1.0 for the last."""
        ...


@dataclass(frozen=True, slots=True)
class Ranking:
    """How much counts what; the benchmarks compare others with this one."""

    by_line: float = 0.5  # the share of the best line; the rest is the message's
    neighbors: tuple[float, ...] = (0.5, 0.25)  # of the scores of those next to it, and of those beyond
    candidates: int = 160  # messages that are read line by line, and half as many for their neighbors

    def rank(
        self, query: Query, held: Mapping[int, Held], statistics: Statistics, messages: Messages
    ) -> list[Found]:
        """Order the messages that hold something of the question, and their neighbors, best first."""
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
        """Return the weight of the words that a message has, a result those of its call too."""
        stems = set(held[index].counts)
        call = None if messages.is_prose(index) else messages.asked_by(index)
        if call is not None and call in held:
            stems |= held[call].counts.keys()
        return sum(weights[stem] for stem in stems)

    def _spread(self, own: Mapping[int, float], messages: Messages) -> dict[int, float]:
        """Add to every message's score a share of the better one of its two neighbors at each distance.

        The sum of both would put the first and the last message behind those in the middle.
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
        most = max((spread.get(index, 0.0) for index in lines), default=0.0) or 1.0
        most_line = max((score for score, _ in lines.values()), default=0.0) or 1.0
        found = []
        for index, (score, numbers) in lines.items():
            share = self.by_line if messages.is_prose(index) else 1.0
            both = (1 - share) * spread.get(index, 0.0) / most + share * score / most_line
            found.append(Found(index, numbers, both * (1 + _NEWER * messages.age(index))))
        return sorted(found, key=lambda one: (-one.score, -one.index))


def distinct(found: Iterable[Found], messages: Messages, most: int) -> list[Found]:
    """Return the first hits that say something new: of several with the same line only the first."""
    kept: list[Found] = []
    seen: set[str] = set()
    for one in found:
        if len(kept) == most:
            break
        lines = messages.lines(one.index)
        line = fold(lines[one.line]).strip() if lines else ""
        if line in seen and len(line) > _SAYS_LITTLE:
            continue
        seen.add(line)
        kept.append(one)
    return kept


def _largest(scores: Mapping[int, float], most: int) -> list[int]:
    return heapq.nlargest(most, scores, key=lambda index: (scores[index], index))


def _bm25(held: Held, weights: Mapping[str, float], usual: float) -> float:
    norm = _SATURATION * (1 - _LENGTH + _LENGTH * held.words / (usual or 1.0))
    return sum(
        weights.get(stem, 0.0) * count * (_SATURATION + 1) / (count + norm)
        for stem, count in held.counts.items()
    )


def _lines_of(
    index: int, query: Query, weights: Mapping[str, float], messages: Messages
) -> tuple[float, tuple[int, ...]]:
    """Return the score of the best line, with the words that only what it answers has, and the best lines."""
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
