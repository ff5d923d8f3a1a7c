"""Finding a text in items that were never drawn, and then its place among the rows."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rolling_chat.text import visible
from rolling_chat.tui.transcript.document import Document, Place
from rolling_chat.tui.transcript.items import Item, Kind
from rolling_chat.tui.transcript.layout import text_when_open
from rolling_chat.tui.transcript.marks import matches_in
from rolling_chat.tui.transcript.selection import Point

MOST_LETTERS = 400
_WINDOW = 16_384  # characters that are looked through at a time
_MARKUP = "*_~`"  # may stand around a word, and is not drawn


def needle(words: str) -> re.Pattern[str] | None:
    """What finds `words` as they stand, whatever their case; a blank finds any white space.

    Markup around that may be left out, but not beside markup that is looked for. So that this takes no
    longer than the text is long, no match begins with markup, or with white space, of any length.
    """
    words = words[:MOST_LETTERS]
    if not words.strip():
        return None
    parts = re.split(r"\s+", words)
    found = re.escape(parts[0])
    for before, after in pairwise(parts):
        blank = r"\s+" if before and after else r"\s"
        found += _markup(before[-1:]) + blank + _markup(after[:1]) + re.escape(after)
    return re.compile(found, re.IGNORECASE)


def _markup(beside: str) -> str:
    """What may stand between white space and a letter that is looked for."""
    return f"[{_MARKUP}]*" if beside and beside not in _MARKUP else ""


def searched(item: Item) -> str:
    """All text of an item: what stands at its head, and what opening it shows."""
    head, body = _head(item), text_when_open(item)
    return f"{head}\n{body}" if head else body


def body_begins(item: Item) -> int:
    """Where in the text that is searched the head ends, which is seen also of a folded item."""
    head = _head(item)
    return len(head) + 1 if head else 0


def offsets_in(text: str, pattern: re.Pattern[str], begin: int, end: int) -> Iterator[int]:
    """Where in a part of a text the matches begin."""
    for match in pattern.finditer(text, begin, end + 4 * MOST_LETTERS):
        if match.start() >= end:
            return
        yield match.start()


def windows(text: str) -> Iterator[tuple[int, int]]:
    """A text in parts, so that what looks through it can pause."""
    for begin in range(0, max(1, len(text)), _WINDOW):
        yield begin, min(len(text), begin + _WINDOW)


class Hits:
    """Where in one item a pattern was found."""

    __slots__ = ("item", "offsets")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.offsets = array("L")

    def __len__(self) -> int:
        return len(self.offsets)


def drawn_length(text: str) -> int:
    """How many characters a text has once control characters are shown."""
    return len(visible(text, tabs=True))


def is_laid_out(document: Document, ordinal: int, offset: int) -> bool:
    """Is an item drawn as far as a place of its text that is drawn?"""
    layout = document.layout(ordinal)
    blocks = [piece.block for piece in layout.pieces[-3:] if piece.block is not None]
    return layout.is_whole or any(block.start > offset for block in blocks)


def hit_point(
    document: Document, ordinal: int, pattern: re.Pattern[str], offset: int | None, before: Sequence[int]
) -> Point:
    """Where a hit is drawn. `offset` is its place in the body, None at the head.

    `before` are the distances, in characters, of the hits above it in the item. Where the hit is of what
    the rows do not show, the column is -1.
    """
    layout = document.layout(ordinal)
    if offset is None:
        return _nth_point(document, Place(ordinal, 1), 1, pattern, len(before))
    starts = [(piece.block.start, at) for at, piece in enumerate(layout.pieces) if piece.block is not None]
    if not starts:
        return Point(Place(ordinal, min(1, len(layout.pieces) - 1)), -1)
    start, at = starts[max(0, bisect_left(starts, (offset + 1,)) - 1)]
    nth = sum(1 for distance in before if distance <= offset - start)
    place = Place(ordinal, at)
    point = _nth_point(document, place, len(layout.lines(at)), pattern, nth)
    return point if point.column >= 0 else Point(document.at_source(place, offset), -1)


def _nth_point(document: Document, place: Place, height: int, pattern: re.Pattern[str], nth: int) -> Point:
    """Where the nth match begins in a piece of some rows, or its last; column -1 where none is drawn."""
    rows = document.forward(place, height + 4).rows
    points = [
        Point(rows[spans[0].row].place, spans[0].start)
        for spans in matches_in(rows, pattern)
        if rows[spans[0].row].place[:2] == place[:2]
    ]
    return points[min(nth, len(points) - 1)] if points else Point(place, -1)


def _head(item: Item) -> str:
    """The text at the head of a tool's work, where what opens does not say it again."""
    return item.text if item.kind is Kind.TOOL and text_when_open(item) == item.detail else ""
