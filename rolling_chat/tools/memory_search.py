"""Finding the messages of a branch that answer a question, by its words: no index, one pass over the text.

A branch is in memory anyway, and looking for a word in ten megabytes takes milliseconds; so there is
nothing to keep up to date, nothing that could be out of step with the branch, and every script, path
and identifier is found that holds the word. A few hundred messages that hold the rarest of the words
are then read line by line.
"""

from __future__ import annotations

import heapq
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TypeAlias

from rolling_chat.messages import Message
from rolling_chat.search_terms import content_stems, fold, words_of
from rolling_chat.tools.memory import RECALL, piece_lines, piece_text

_MAX_STEMS = 24  # of a question that count
_CANDIDATES = 200  # messages that are read line by line
_MAX_HITS = 200  # occurrences of one word in one message that are looked at
_MAX_LINES = 30  # lines of one message that are weighed
_LOOK_BACK = 100  # messages from a reply to its request
_SAYS_LITTLE = 12  # characters; a line so short is the same in many messages that are not
_SHORT = 3  # characters; a word so short is looked for as a word, longer ones inside words too
_TITLE = 300  # characters of what a message answers that are read with it

# How much a word counts: as itself, at the beginning of another, inside of one.
_SAME, _BEGINS, _INSIDE = 1.0, 0.7, 0.4
# How much it counts so many lines from the line that is weighed, and beyond them.
_NEAR = ((0, 1.0), (2, 0.5), (8, 0.2), (30, 0.1))
_FAR = 0.05
_IN_CALL, _IN_REQUEST = 0.6, 0.4  # in the call that a result answers, in the request that a reply answers
_ADJACENT = 0.5  # of the rarer one's weight, where two words of the question stand side by side
_VERBATIM = 0.5  # of its words' weight, for a name written as in the question
_NEWER = 0.05  # from the first message to the last: what is corrected is corrected later

_NAME = re.compile(r"[^\s\"'`(),;!?]*[\w][^\s\"'`(),;!?]*")
_NAME_LIKE = re.compile(r"[A-Za-z]\d|\d[A-Za-z.]|[a-z][A-Z]|\w[_./:@\\-]\w")


# by stem: the lines that hold it, ascending, and how well each does
_Hits: TypeAlias = dict[str, tuple[tuple[int, ...], tuple[float, ...]]]


@dataclass(frozen=True, slots=True)
class Found:
    """A search hit: the message's index, and the number of its best line in `piece_lines`, from 0."""

    index: int
    line: int
    score: float


@dataclass(frozen=True, slots=True)
class _Query:
    stems: tuple[str, ...]
    names: tuple[str, ...]  # what of it looks like a path, an identifier or a number, folded
    weights: dict[str, float]

    def weigh(self, text: str) -> float:
        return sum(self.weights.get(one, 0.0) for one in set(words_of(text)))


def search_branch(branch: Sequence[Message], question: str, indexes: Iterable[int], most: int) -> list[Found]:
    """Rank the messages at the given indexes (from 1) by how well they answer a question, best first.

    Of several messages with the same line only the newest comes, and what `recall` was asked and
    brought is left out: it is a copy.
    """
    stems = tuple(content_stems(question)[:_MAX_STEMS])
    held, holders, total = _first_pass(branch, stems, indexes)
    if not held:
        return []
    weights = {one: math.log(1 + total / holders[one]) for one in stems if holders[one]}
    names = tuple(fold(name) for name in _NAME.findall(question) if _NAME_LIKE.search(name))
    query = _Query(stems, names, weights)
    coarse = sorted(held, key=lambda index: (-sum(weights[one] for one in held[index]), -index))
    found = [_weigh(branch, index, query) for index in coarse[:_CANDIDATES]]
    return _distinct(branch, sorted(found, key=lambda one: (-one.score, -one.index)), most)


def _first_pass(
    branch: Sequence[Message], stems: Sequence[str], indexes: Iterable[int]
) -> tuple[dict[int, set[str]], Counter[str], int]:
    """Return which stems each message holds, how many messages hold each, and how many there are."""
    held: dict[int, set[str]] = {}
    holders: Counter[str] = Counter()
    total = 0
    asked: set[str] = set()  # what the calls hold, for the results that answer them
    for index in indexes:
        message = branch[index - 1]
        if _is_recall(message):
            continue
        total += 1
        text = fold(piece_text(_without_recall(message)))
        holds = {one for one in stems if _holds(text, one)}
        holders.update(holds)
        if message.role != "tool":
            asked = holds if message.tool_calls else set()
        if holds or (message.role == "tool" and asked):
            held[index] = holds | asked if message.role == "tool" else holds
    return held, holders, total


def _without_recall(message: Message) -> Message:
    """Return the message as it is searched: what it asked of `recall` are the words of a question."""
    if all(call.name != RECALL for call in message.tool_calls):
        return message
    others = tuple(call for call in message.tool_calls if call.name != RECALL)
    return Message(message.role, message.content, tool_calls=others)


def _is_recall(message: Message) -> bool:
    return message.role == "tool" and message.name == RECALL


def _holds(text: str, stem: str) -> bool:
    if len(stem) > _SHORT or not stem.isascii():
        return stem in text
    return next(_places_of(text, stem), -1) >= 0


def _places_of(text: str, stem: str) -> Iterator[int]:
    """Yield where `stem` stands; a short one only at the beginning of a word."""
    is_short = len(stem) <= _SHORT and stem.isascii()
    at = text.find(stem)
    while at >= 0:
        if not is_short or not at or not text[at - 1].isalnum():
            yield at
        at = text.find(stem, at + len(stem))


def _weigh(branch: Sequence[Message], index: int, query: _Query) -> Found:
    """Return the line of the message that answers best, and how well."""
    lines = piece_lines(_without_recall(branch[index - 1]))
    hits = _hits(lines, query)
    weighed: dict[int, float] = {}
    for stem, (held_at, shares) in hits.items():
        for at, share in zip(held_at, shares, strict=True):
            weighed[at] = weighed.get(at, 0.0) + share * query.weights[stem]
    best, line = 0.0, 0
    for at in heapq.nlargest(_MAX_LINES, weighed, key=weighed.__getitem__):
        score = _score_line(at, hits, query) + _bonus(lines[at], query)
        if score > best:
            best, line = score, at
    best += _from_title(branch, index, hits, query)
    return Found(index, line, best * (1 + _NEWER * index / len(branch)))


def _hits(lines: Sequence[str], query: _Query) -> _Hits:
    """By stem, the lines that hold it and how well: as the word itself, at the beginning of one, inside."""
    text = fold("\n".join(lines))
    ends = [match.start() for match in re.finditer("\n", text)]
    hits: _Hits = {}
    words: dict[int, frozenset[str]] = {}
    for stem in query.weights:
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


def _score_line(at: int, hits: _Hits, query: _Query) -> float:
    score = 0.0
    for stem, (lines, shares) in hits.items():
        after = bisect_left(lines, at)
        nearest = range(max(0, after - 1), min(len(lines), after + 2))
        score += query.weights[stem] * max(shares[one] * _nearness(abs(lines[one] - at)) for one in nearest)
    return score


def _nearness(lines: int) -> float:
    return next((share for most, share in _NEAR if lines <= most), _FAR)


def _bonus(line: str, query: _Query) -> float:
    """For words that stand side by side as in the question, and names written as there."""
    following = set(pairwise(words_of(line)))
    adjacent = sum(
        min(query.weights.get(one, 0.0), query.weights.get(other, 0.0))
        for one, other in pairwise(query.stems)
        if (one, other) in following
    )
    folded = fold(line)
    verbatim = sum(query.weigh(name) for name in query.names if name in folded)
    return _ADJACENT * adjacent + _VERBATIM * verbatim


def _from_title(branch: Sequence[Message], index: int, hits: _Hits, query: _Query) -> float:
    """Score the words that a message lacks and the call or request that it answers has."""
    text, share = _title(branch, index)
    missing = [stem for stem in query.weights if stem not in hits]
    if not text or not missing:
        return 0.0
    words = _title_words(text)
    return share * sum(query.weights[stem] for stem in missing if stem in words)


@lru_cache(maxsize=1024)
def _title_words(text: str) -> frozenset[str]:
    return frozenset(words_of(text))


def _title(branch: Sequence[Message], index: int) -> tuple[str, float]:
    message = branch[index - 1]
    if message.role == "user":
        return "", 0.0
    is_result = message.role == "tool"
    for before in range(index - 1, max(0, index - 1 - _LOOK_BACK), -1):
        earlier = branch[before - 1]
        if is_result and earlier.role == "assistant":
            calls = [call for call in earlier.tool_calls if call.id == message.tool_call_id]
            return " ".join(f"{call.name} {call.arguments}" for call in calls)[:_TITLE], _IN_CALL
        if not is_result and earlier.role == "user":
            return earlier.text[:_TITLE], _IN_REQUEST
    return "", 0.0


def _distinct(branch: Sequence[Message], found: Sequence[Found], most: int) -> list[Found]:
    kept: list[Found] = []
    seen: set[str] = set()
    for one in found:
        if len(kept) == most:
            break
        line = fold(piece_lines(_without_recall(branch[one.index - 1]))[one.line]).strip()
        if line in seen and len(line) > _SAYS_LITTLE:
            continue
        seen.add(line)
        kept.append(one)
    return kept
