"""Selected text: between two places, as it stands in the source and not as it is drawn."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rolling_chat.tui.transcript.document import Document, Place, Row

_PIECES, _LINES = 24, 16  # bits of a place's key
_LOWEST = 1 << 32  # ordinals may be below zero, keys may not
_MOST_ROWS = 200_000
_WORD = re.compile(r"[\w./~-]+|\s+|.")


def key_of(place: Place) -> int:
    """A number for a place that grows downwards, and that no height above it changes."""
    return ((place.ordinal + _LOWEST) << (_PIECES + _LINES)) | (place.piece << _LINES) | place.line


def place_of_key(key: int) -> Place:
    """The place of a number."""
    ordinal = (key >> (_PIECES + _LINES)) - _LOWEST
    return Place(ordinal, (key >> _LINES) & ((1 << _PIECES) - 1), key & ((1 << _LINES) - 1))


@dataclass(frozen=True, slots=True)
class Point:
    """A character of a row, the gutter counted."""

    place: Place
    column: int


def selected_text(document: Document, first: Point | None, last: Point | None) -> str:
    """The text from one point to another, wrapped rows joined; None is the very beginning or the very end."""
    begin = first.place if first is not None else document.first
    rows = _rows_between(document, begin, last.place if last is not None else None)
    text = ""
    for at, row in enumerate(rows):
        start = first.column if first is not None and not at else 0
        is_last = last is not None and row.place == last.place
        text += row.line.taken(start, last.column if last is not None and is_last else None)
        if at < len(rows) - 1:
            text = text + "\n" if row.line.joint is None else text + row.line.joint
    return "\n".join(line.rstrip() for line in text.split("\n"))


def word_at(row: Row, column: int) -> tuple[int, int]:
    """The first and one past the last character of the word at a column; nothing in the gutter."""
    for found in _WORD.finditer(row.line.drawn, row.line.gutter):
        if found.start() <= column < found.end():
            return found.span()
    return (column, column)


def line_at(document: Document, row: Row) -> tuple[Point, Point]:
    """From the first to the last character of the line that a row is a part of."""
    first, last = row, row
    while (above := document.backward(first.place, 1)) and above[0].line.joint is not None:
        first = above[0]
    while last.line.joint is not None and (below := _below(document, last)) is not None:
        last = below
    return Point(first.place, first.line.gutter), Point(last.place, len(last.line.drawn) - last.line.margin)


def _below(document: Document, row: Row) -> Row | None:
    rows = document.forward(row.place._replace(line=row.place.line + 1), 1).rows
    return rows[0] if rows else None


def _rows_between(document: Document, first: Place, last: Place | None) -> list[Row]:
    rows: list[Row] = []
    place = first
    while len(rows) < _MOST_ROWS:
        stretch = document.forward(place, 100).rows
        for row in stretch:
            if last is not None and row.place > last:
                return rows
            rows.append(row)
        if not stretch:
            return rows
        place = stretch[-1].place._replace(line=stretch[-1].place.line + 1)
    return rows
