"""Split a text into pieces, its lines or parts of long lines, and choose those that fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from rolling_chat.context.count_memo import CountText

# Longer lines are split, so that parts of them can be kept.
_MAX_PIECE = 1_000
_PART = re.compile(r".{1,240}(?=[\s,;}>\])|])[\s,;}>\])|]|.{1,300}", re.DOTALL)
_MARK_CHARS = 16  # the length of a gap's mark
_MAX_MISSES = 40  # consecutive pieces that do not fit before a layer ends
_ATTEMPTS = 7
_FULL_SHARE = 0.96  # of the room; filling more is not worth another attempt


@dataclass(frozen=True, slots=True)
class Pieces:
    """The lines of a text, with long lines split into parts.

    `numbers` are the line numbers of the pieces, from 1. `inner` are the indexes of pieces that continue the
    line of the piece before.
    """

    texts: Sequence[str]
    numbers: Sequence[int]
    inner: Set[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Layer:
    """Piece indexes in order of priority, and the share of the room that they may use."""

    order: Iterable[int]
    share: float


def split(text: str) -> Pieces:
    """Split a text into pieces; a final newline yields an empty last piece."""
    lines = text.split("\n")
    if max(map(len, lines)) <= _MAX_PIECE:
        return Pieces(lines, range(1, len(lines) + 1))
    texts: list[str] = []
    numbers: list[int] = []
    inner: set[int] = set()
    for number, line in enumerate(lines, start=1):
        parts = [line] if len(line) <= _MAX_PIECE else _PART.findall(line)
        inner.update(range(len(texts) + 1, len(texts) + len(parts)))
        texts.extend(parts)
        numbers.extend([number] * len(parts))
    return Pieces(texts, numbers, inner)


def choose(sizes: Sequence[int], layers: Sequence[Layer], room: int) -> list[int]:
    """Return the indexes of pieces of `sizes` characters that fit in `room`, in text order.

    Each layer uses at most its share of the room; the next layer gets what is left over.
    """
    chosen: set[int] = set()
    used = limit = 0
    for number, layer in enumerate(layers):
        limit = room if number == len(layers) - 1 else min(room, limit + int(room * layer.share))
        misses = 0
        for index in layer.order:
            if index in chosen:
                continue
            marks = 1 - (index - 1 in chosen) - (index + 1 in chosen)
            cost = sizes[index] + 1 + _MARK_CHARS * marks
            if used + cost > limit:
                misses += 1
                if misses > _MAX_MISSES:
                    break
                continue
            chosen.add(index)
            used += cost
            misses = 0
    return sorted(chosen)


def edges(count: int, *, first: float = 0.5) -> Iterator[int]:
    """Yield the indexes below `count` from both ends inwards; a share of `first` comes from the beginning."""
    low, high = 0, count - 1
    due = first
    while low <= high:
        if due >= 0.5:
            due -= 1
            yield low
            low += 1
        else:
            yield high
            high -= 1
        due += first


def with_neighbors(indexes: Iterable[int], count: int, around: int = 1) -> Iterator[int]:
    """Yield each index, followed by its neighbors."""
    for index in indexes:
        yield index
        for step in range(1, around + 1):
            if index - step >= 0:
                yield index - step
            if index + step < count:
                yield index + step


def fill(render: Callable[[int], str], room: int, chars: int, count: CountText) -> str:
    """Return the longest rendering that takes at most `room` tokens; "" if none does.

    `render` makes a text of about the given number of characters, `chars` at first.
    """
    best, best_tokens = "", -1
    for _ in range(_ATTEMPTS):
        text = render(chars)
        tokens = count(text)
        if tokens <= room and tokens > best_tokens:
            best, best_tokens = text, tokens
        if room * _FULL_SHARE <= tokens <= room:
            break
        wanted = int(chars * 0.985 * room / max(1, tokens))
        # no shorter text is possible, or the whole text is included
        if wanted <= 0 or (tokens <= room and wanted <= chars):
            break
        chars = wanted
    return best or _if_it_fits(render(0), room, count)


def _if_it_fits(text: str, room: int, count: CountText) -> str:
    return text if count(text) <= room else ""
