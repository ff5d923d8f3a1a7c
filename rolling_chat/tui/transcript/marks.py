"""Words that were looked for: where they stand on rows that are drawn already, and how they are marked."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.style import Style
from textual.strip import Strip

from rolling_chat.tui.transcript.document import Document, Row
from rolling_chat.tui.transcript.overlays import cell_of
from rolling_chat.tui.transcript.selection import Point

_HIT = Style(bold=True, underline=True)
_CURRENT = Style(bold=True, reverse=True)
_LEAST_LETTERS = 2  # a single letter would mark half the page
_MOST_WORDS = 32
_ROWS_AROUND = 8  # a match may begin above what is looked at, and end below it


class Span(NamedTuple):
    """A part of a row, in characters, the gutter counted."""

    row: int
    start: int
    end: int


class Marked(NamedTuple):
    """A part of a row that is marked."""

    start: int
    end: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class Found:
    """What is marked: matches of a pattern, in one item or in all; `current` is where one of them begins.

    A `current` whose column is negative is a whole row: what was found in it is not drawn.
    """

    pattern: re.Pattern[str] | None = None
    item_id: str = ""
    current: Point | None = None


def words_pattern(words: str) -> re.Pattern[str] | None:
    """What finds `words` and what begins with them, whatever their case; None where there are none."""
    wanted = [word for word in re.findall(r"[^\W_]+", words)[:_MOST_WORDS] if len(word) >= _LEAST_LETTERS]
    if not wanted:
        return None
    # the longest first: one word may be the beginning of another
    alike = "|".join(map(re.escape, sorted(wanted, key=len, reverse=True)))
    return re.compile(rf"(?<![^\W_])(?:{alike})", re.IGNORECASE)


def matches_in(rows: Sequence[Row], pattern: re.Pattern[str]) -> Iterator[tuple[Span, ...]]:
    """Every match in the text of some rows; one that is wrapped has a span in each of its rows."""
    first = 0
    while first < len(rows):
        stop = first + 1
        while stop < len(rows) and rows[stop - 1].line.joint is not None:
            stop += 1
        yield from _in_line(rows, range(first, stop), pattern)
        first = stop


def marks_in(document: Document, rows: Sequence[Row], found: Found) -> list[tuple[Marked, ...]]:
    """For each of the rows what is marked in it."""
    marks: list[list[Marked]] = [[] for _ in rows]
    if found.pattern is None or not rows:
        return [()] * len(rows)
    above = _above(document, rows[0])
    below = document.forward(rows[-1].place, _ROWS_AROUND).rows[1:] if rows[-1].line.joint is not None else []
    around = [*above, *rows, *below]
    for spans in matches_in(around, found.pattern):
        begin = around[spans[0].row]
        if found.item_id and document.items.at(begin.place.ordinal).id != found.item_id:
            continue
        is_current = found.current == Point(begin.place, spans[0].start)
        for span in spans:
            if 0 <= span.row - len(above) < len(rows):
                marks[span.row - len(above)].append(Marked(span.start, span.end, is_current))
    if found.current is not None and found.current.column < 0:
        for row, marked_ in zip(rows, marks, strict=True):
            if row.place == found.current.place:
                marked_[:] = [Marked(row.line.gutter, len(row.line.drawn) - row.line.margin, is_current=True)]
    return [tuple(row) for row in marks]


def marked(strip: Strip, marks: Sequence[Marked]) -> Strip:
    """The row with its marks; the current one is in reverse, the others are underlined."""
    parts, at = [], 0
    for mark in marks:
        start, end = cell_of(strip, mark.start), cell_of(strip, mark.end)
        if start < at or start >= end:
            continue
        style = _CURRENT if mark.is_current else _HIT
        parts += [strip.crop(at, start), strip.crop(start, end).apply_style(style)]
        at = end
    return Strip.join([*parts, strip.crop(at)]) if parts else strip


def _in_line(rows: Sequence[Row], line: range, pattern: re.Pattern[str]) -> Iterator[tuple[Span, ...]]:
    """The matches in rows that are one line of text."""
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
    """The rows above one that are the same line of text."""
    rows = document.backward(row.place, _ROWS_AROUND)
    first = len(rows)
    while first and rows[first - 1].line.joint is not None:
        first -= 1
    return rows[first:]
