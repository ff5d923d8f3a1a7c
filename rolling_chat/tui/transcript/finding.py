"""Search: find text in items that were never drawn, and mark it in rows that are."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from rolling_chat.text import visible
from rolling_chat.tui.state.items import Item, Kind
from rolling_chat.tui.transcript.document import Document
from rolling_chat.tui.transcript.layout import Position, Row, text_when_open
from rolling_chat.tui.transcript.selection import Point

MAX_LETTERS = 400
_WINDOW = 16_384  # characters searched at a time
_MARKUP = "*_~`"  # may surround a word, and is not drawn
_MIN_LETTERS = 2  # a single letter would mark half the page
_MAX_WORDS = 32
_ROWS_AROUND = 8  # a match may begin above the given rows, and end below them


def needle(words: str) -> re.Pattern[str] | None:
    """Return a pattern that finds `words`, ignoring case; a blank in them matches any white space.

    Markup next to that white space is skipped, unless `words` has markup there. To keep the search linear,
    no match begins with an unbounded run of markup or white space.
    """
    words = words[:MAX_LETTERS]
    if not words.strip():
        return None
    parts = re.split(r"\s+", words)
    found = re.escape(parts[0])
    for before, after in pairwise(parts):
        blank = r"\s+" if before and after else r"\s"
        found += _markup(before[-1:]) + blank + _markup(after[:1]) + re.escape(after)
    return re.compile(found, re.IGNORECASE)


def _markup(beside: str) -> str:
    """Return a pattern for the markup allowed between white space and the letter next to it."""
    return f"[{_MARKUP}]*" if beside and beside not in _MARKUP else ""


def searched(item: Item) -> str:
    """Return an item's searchable text: its head, and the text shown when it is unfolded."""
    head, body = _head(item), text_when_open(item)
    return f"{head}\n{body}" if head else body


def body_begins(item: Item) -> int:
    """Return the index in the searched text where the body begins, which a folded item hides."""
    head = _head(item)
    return len(head) + 1 if head else 0


def offsets_in(text: str, pattern: re.Pattern[str], begin: int, end: int) -> Iterator[int]:
    """Yield the indices at which matches begin within a part of a text."""
    for match in pattern.finditer(text, begin, end + 4 * MAX_LETTERS):
        if match.start() >= end:
            return
        yield match.start()


def windows(text: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of consecutive parts of a text, so that a search can pause between them."""
    for begin in range(0, max(1, len(text)), _WINDOW):
        yield begin, min(len(text), begin + _WINDOW)


class Hits:
    """The hits of a pattern in one item, as indices in its text."""

    __slots__ = ("item", "offsets")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.offsets = array("L")

    def __len__(self) -> int:
        return len(self.offsets)


def drawn_length(text: str) -> int:
    """Return how many characters a text has once control characters are made visible."""
    return len(visible(text, tabs=True))


def is_laid_out(document: Document, ordinal: int, offset: int) -> bool:
    """Return whether an item is laid out beyond an index of its drawn text."""
    layout = document.layout(ordinal)
    blocks = [piece.block for piece in layout.pieces[-3:] if piece.block is not None]
    return layout.is_whole or any(block.start > offset for block in blocks)


def hit_point(
    document: Document, ordinal: int, pattern: re.Pattern[str], offset: int | None, before: Sequence[int]
) -> Point:
    """Return where a hit is drawn; `offset` is its index in the body, None in the head.

    `before` are the distances, in characters, of the hits above it in the item. The column is -1 if the
    rows do not show the matched text.
    """
    layout = document.layout(ordinal)
    if offset is None:
        return _nth_point(document, Position(ordinal, 1), 1, pattern, len(before))
    starts = [(piece.block.start, at) for at, piece in enumerate(layout.pieces) if piece.block is not None]
    if not starts:
        return Point(Position(ordinal, min(1, len(layout.pieces) - 1)), -1)
    start, at = starts[max(0, bisect_left(starts, (offset + 1,)) - 1)]
    nth = sum(1 for distance in before if distance <= offset - start)
    position = Position(ordinal, at)
    point = _nth_point(document, position, len(layout.lines(at)), pattern, nth)
    return point if point.column >= 0 else Point(document.at_source(position, offset), -1)


def _nth_point(
    document: Document, position: Position, height: int, pattern: re.Pattern[str], nth: int
) -> Point:
    """Return where the nth match in a piece, or its last, begins; the column is -1 if there is none."""
    rows = document.forward(position, height + 4).rows
    points = [
        Point(rows[spans[0].row].position, spans[0].start)
        for spans in matches_in(rows, pattern)
        if rows[spans[0].row].position[:2] == position[:2]
    ]
    return points[min(nth, len(points) - 1)] if points else Point(position, -1)


def _head(item: Item) -> str:
    """Return the head text of a call or an attached file, unless the unfolded text repeats it."""
    if item.kind is Kind.ATTACHED:
        return f"@{item.text}"
    return item.text if item.kind is Kind.TOOL and text_when_open(item) == item.detail else ""


class Span(NamedTuple):
    """A part of a row, in characters, including the gutter."""

    row: int
    start: int
    end: int


class Marked(NamedTuple):
    """A highlighted part of a row."""

    start: int
    end: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class Found:
    """The hits to mark: of a pattern, in one item or in all; `current` is where one of them begins.

    A negative column in `current` marks the whole row, which does not show the matched text.
    """

    pattern: re.Pattern[str] | None = None
    item_id: str = ""
    current: Point | None = None


def words_pattern(words: str) -> re.Pattern[str] | None:
    """Return a pattern that finds words beginning with any of `words`, ignoring case; None if empty."""
    wanted = [word for word in re.findall(r"[^\W_]+", words)[:_MAX_WORDS] if len(word) >= _MIN_LETTERS]
    if not wanted:
        return None
    # longest first: one word may be a prefix of another
    alike = "|".join(map(re.escape, sorted(wanted, key=len, reverse=True)))
    return re.compile(rf"(?<![^\W_])(?:{alike})", re.IGNORECASE)


def matches_in(rows: Sequence[Row], pattern: re.Pattern[str]) -> Iterator[tuple[Span, ...]]:
    """Yield every match in the text of `rows`, as one span for each row that it covers."""
    first = 0
    while first < len(rows):
        stop = first + 1
        while stop < len(rows) and rows[stop - 1].line.joint is not None:
            stop += 1
        yield from _in_line(rows, range(first, stop), pattern)
        first = stop


def marks_in(document: Document, rows: Sequence[Row], found: Found) -> list[tuple[Marked, ...]]:
    """Return the marked parts of each row."""
    marks: list[list[Marked]] = [[] for _ in rows]
    if found.pattern is None or not rows:
        return [()] * len(rows)
    above = _above(document, rows[0])
    below = (
        document.forward(rows[-1].position, _ROWS_AROUND).rows[1:] if rows[-1].line.joint is not None else []
    )
    around = [*above, *rows, *below]
    for spans in matches_in(around, found.pattern):
        begin = around[spans[0].row]
        if found.item_id and document.items.at(begin.position.ordinal).id != found.item_id:
            continue
        is_current = found.current == Point(begin.position, spans[0].start)
        for span in spans:
            if 0 <= span.row - len(above) < len(rows):
                marks[span.row - len(above)].append(Marked(span.start, span.end, is_current))
    if found.current is not None and found.current.column < 0:
        for row, marked_ in zip(rows, marks, strict=True):
            if row.position == found.current.position:
                marked_[:] = [Marked(row.line.gutter, len(row.line.drawn) - row.line.margin, is_current=True)]
    return [tuple(row) for row in marks]


def _in_line(rows: Sequence[Row], line: range, pattern: re.Pattern[str]) -> Iterator[tuple[Span, ...]]:
    """Yield the matches in rows that form one line of text."""
    text, begins = "", []
    for at in line:
        drawn = rows[at].line
        begins.append(len(text))
        text += drawn.drawn[drawn.gutter : len(drawn.drawn) - drawn.margin] + (drawn.joint or "")
    for match in pattern.finditer(text):
        spans = []
        at = bisect_right(begins, match.start()) - 1
        while at < len(begins) and begins[at] < match.end():
            drawn = rows[line[at]].line
            start, end = max(0, match.start() - begins[at]), match.end() - begins[at]
            end = min(end, len(drawn.drawn) - drawn.margin - drawn.gutter)
            if start < end:
                spans.append(Span(line[at], drawn.gutter + start, drawn.gutter + end))
            at += 1
        if spans:
            yield tuple(spans)


def _above(document: Document, row: Row) -> list[Row]:
    """Return the rows above a row that belong to the same line of text."""
    rows = document.backward(row.position, _ROWS_AROUND)
    first = len(rows)
    while first and rows[first - 1].line.joint is not None:
        first -= 1
    return rows[first:]
