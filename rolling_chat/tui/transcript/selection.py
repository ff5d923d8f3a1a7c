"""Selected text: the source text between two points, not its drawn form."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from rolling_chat.tui.transcript.document import Document
from rolling_chat.tui.transcript.layout import Position, Row

_PIECES, _LINES = 24, 16  # bits of a position's key
_LOWEST = 1 << 32  # ordinals may be below zero, keys may not
_WORD = re.compile(r"[\w./~-]+|\s+|.")


def key_of(position: Position) -> int:
    """Return a number for a position that grows downwards and depends on no height."""
    return ((position.ordinal + _LOWEST) << (_PIECES + _LINES)) | (position.piece << _LINES) | position.line


def position_of_key(key: int) -> Position:
    """Return the position for a number made by `key_of`."""
    ordinal = (key >> (_PIECES + _LINES)) - _LOWEST
    return Position(ordinal, (key >> _LINES) & ((1 << _PIECES) - 1), key & ((1 << _LINES) - 1))


@dataclass(frozen=True, slots=True)
class Point:
    """A character of a row; its column counts the gutter."""

    position: Position
    column: int


def selected_text(document: Document, first: Point | None, last: Point | None) -> str:
    """Return the text between two points, wrapped rows joined; None is the very beginning or end.

    Lays out missing text first, however long that takes.
    """
    collector = SelectionCollector(document, first, last)
    collector.collect(math.inf)
    return collector.text


class SelectionCollector:
    """A collector of selected text, which works in slices of some milliseconds."""

    def __init__(self, document: Document, first: Point | None, last: Point | None) -> None:
        self._document, self._begun = document, document.begun
        self._parts = _parts(document, first, last)
        self._taken: list[str] = []

    @property
    def text(self) -> str:
        """The text collected so far, without trailing white space."""
        return "\n".join(line.rstrip() for line in "".join(self._taken).split("\n"))

    def is_lost(self, document: Document) -> bool:
        """Return whether the items were replaced since the collection began."""
        return document is not self._document or document.begun != self._begun

    def collect(self, seconds: float) -> bool:
        """Collect more text for about `seconds`; return whether there is more."""
        until = time.perf_counter() + seconds
        for part in self._parts:
            self._taken.append(part)
            if time.perf_counter() > until:
                return True
        return False


def _parts(document: Document, first: Point | None, last: Point | None) -> Iterator[str]:
    start, between = first.column if first is not None else 0, ""
    for rows in document.stretches(first.position if first is not None else document.first):
        parts = []
        for row in rows:
            if last is not None and row.position > last.position:
                break
            is_last = last is not None and row.position == last.position
            parts += [between, row.line.taken(start, last.column if last is not None and is_last else None)]
            start, between = 0, "\n" if row.line.joint is None else row.line.joint
        yield "".join(parts)
        if last is not None and rows and rows[-1].position >= last.position:
            return


def word_at(row: Row, column: int) -> tuple[int, int]:
    """Return the first and the end column of the word at a column; both are `column` if there is none."""
    for found in _WORD.finditer(row.line.drawn, row.line.gutter):
        if found.start() <= column < found.end():
            return found.span()
    return (column, column)


def line_at(document: Document, row: Row) -> tuple[Point, Point]:
    """Return the first and the last point of the line of text that a row belongs to."""
    first, last = row, row
    while (above := document.backward(first.position, 1)) and above[0].line.joint is not None:
        first = above[0]
    for below in chain.from_iterable(document.stretches(row.position)):
        last = below
        if below.line.joint is None:
            break
    return Point(first.position, first.line.gutter), Point(
        last.position, len(last.line.drawn) - last.line.margin
    )
