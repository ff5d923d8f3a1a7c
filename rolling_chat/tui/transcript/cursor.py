"""The reader's cursor: its position on a row, and its movement by rows, words and messages."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, TypeAlias

from rich.cells import cell_len, split_graphemes

from rolling_chat.tui.state.items import Item, Kind
from rolling_chat.tui.transcript.document import Document
from rolling_chat.tui.transcript.layout import Position, Row
from rolling_chat.tui.transcript.selection import Point

By: TypeAlias = Literal["character", "word", "edge"]
_WORD = re.compile(r"\w+")


class Cursor:
    """The reader's cursor on a character of a row; moving up and down keeps the column."""

    def __init__(self, document: Document, position: Position) -> None:
        self.document = document
        self._position = position
        self._column = 0
        self._goal = 0  # the cell, from the left, that up and down aim for
        self._source = 0
        self._item_id = ""
        self._move(position, goal=0)

    @property
    def point(self) -> Point:
        """The row and the character that the cursor is on."""
        return Point(self._position, self._column)

    @property
    def item(self) -> Item:
        """The item that the cursor is in."""
        return self.document.items.at(self._position.ordinal)

    @property
    def source(self) -> int:
        """The approximate index in the item's text at which the cursor's row begins."""
        row = self._row(self._position)
        return row.line.at if row is not None else 0

    def find_again(self, document: Document) -> None:
        """Follow the cursor's item after the items or rows changed; if it is gone, go to the last row."""
        self.document = document
        if self._relocate():
            self._clamp()

    def look_changed(self) -> None:
        """Move to the row that shows the same text after the rows were wrapped at another width."""
        if self._relocate():
            self._move(self.document.at_source(self._position, self._source), goal=self._goal)

    def to(self, position: Position) -> None:
        """Move to a row."""
        self._move(position, goal=self._goal)

    def to_point(self, point: Point) -> None:
        """Move to a character."""
        self._move(point.position, column=point.column)

    def by_rows(self, rows: int) -> None:
        """Move up or down by rows."""
        self._clamp()
        if rows < 0:
            above = self.document.backward(self._position, -rows)
            if above:
                self.to(above[0].position)
            return
        below = self.document.forward(self._position, rows + 1).rows
        if below:
            self.to(below[-1].position)

    def to_edge(self, edge: int) -> None:
        """Move to the first row if `edge` is negative, otherwise to the last."""
        document = self.document
        rows = document.forward(document.first, 1).rows if edge < 0 else document.backward(document.end, 1)
        if rows:
            self._move(rows[0].position, goal=0)

    def by_items(self, step: int, kinds: Collection[Kind]) -> bool:
        """Move to the start of the next or previous item of some kinds; return False if there is none."""
        self._clamp()
        document = self.document
        ordinal = self._position.ordinal
        begin = document.beginning(ordinal)
        ordinal += 0 if step < 0 and self._position > begin else step
        while ordinal in document.ordinals and document.items.at(ordinal).kind not in kinds:
            ordinal += step
        if ordinal not in document.ordinals:
            return False
        self._move(document.beginning(ordinal), goal=0)
        return True

    def along(self, step: int, by: By) -> None:
        """Move left or right by a character, by a word, or to the end of the row."""
        self._clamp()
        row = self._row(self._position)
        if row is None:
            return
        first, last = _ends(row)
        column = first if step < 0 else last
        if by != "edge" and column == self._column:
            self._past_edge(step)
        elif by == "character":
            stops = _stops(row)
            beyond = [at for at in stops if (at < self._column if step < 0 else at > self._column)]
            self._move(self._position, column=beyond[-1 if step < 0 else 0])
        elif by == "word":
            text = row.line.drawn[:last]
            words = [word.start() if step < 0 else word.end() for word in _WORD.finditer(text, first)]
            beyond = [at for at in words if (at < self._column if step < 0 else at > self._column)]
            self._move(self._position, column=beyond[-1 if step < 0 else 0] if beyond else column)
        else:
            self._move(self._position, column=column)

    def _past_edge(self, step: int) -> None:
        before = self._position
        self.by_rows(step)
        row = self._row(self._position)
        if row is not None and self._position != before:
            first, last = _ends(row)
            self._move(self._position, column=last if step < 0 else first)

    def _relocate(self) -> bool:
        """Find the cursor's item in the changed list; if it is gone, go to the end and return False."""
        ordinal = self.document.items.by_id.get(self._item_id)
        if ordinal is None:
            self.to_edge(1)
            return False
        self._position = self._position._replace(ordinal=ordinal)
        return True

    def _clamp(self) -> None:
        """Move to the nearest position that still exists, keeping the cell that up and down aim for."""
        self._move(self._position, column=self._column, goal=self._goal)

    def _move(self, position: Position, *, column: int | None = None, goal: int | None = None) -> None:
        """Move to a row, or to the nearest one: to a column, or else to the character at the cell `goal`.

        Up and down aim for `goal` from now on, or without it for the cell reached.
        """
        row = self._row(position)
        if row is None:
            self._position, self._column = position, 0
            return
        stops = _stops(row)
        if column is None:
            column = max(
                (at for at in stops if cell_len(row.line.drawn[:at]) <= (goal or 0)), default=stops[0]
            )
        else:
            column = max((at for at in stops if at <= column), default=stops[0])
        self._position, self._column = row.position, column
        self._goal = goal if goal is not None else cell_len(row.line.drawn[:column])
        self._source, self._item_id = row.line.at, self.document.items.at(row.position.ordinal).id

    def _row(self, position: Position) -> Row | None:
        """Return the row at a position, or the item's last row if it has none there."""
        document = self.document
        rows = document.forward(position, 1).rows
        if position.ordinal in document.ordinals and (
            not rows or rows[0].position.ordinal != position.ordinal
        ):
            rows = document.backward(document.end_of(position.ordinal), 1) or rows
        rows = rows or document.backward(document.end, 1)
        return rows[0] if rows else None


def _ends(row: Row) -> tuple[int, int]:
    return row.line.gutter, max(row.line.gutter, len(row.line.drawn) - row.line.margin)


def _stops(row: Row) -> list[int]:
    """Return the columns of a row where the cursor may be: never inside a character with combining marks."""
    first, last = _ends(row)
    text = row.line.drawn[first:last]
    if text.isascii():
        return list(range(first, last + 1))
    return [*(first + begin for begin, _, _ in split_graphemes(text)[0]), last]
