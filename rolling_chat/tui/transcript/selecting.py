"""Selecting with the mouse and by keys, as Textual has it, and taking what is selected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual import work
from textual.geometry import Offset
from textual.selection import Selection

from rolling_chat.tui.transcript.document import SLICE, Document, Row
from rolling_chat.tui.transcript.scroller import RowScroller
from rolling_chat.tui.transcript.selection import (
    Point,
    Taking,
    key_of,
    line_at,
    place_of_key,
    selected_text,
    word_at,
)

_BREATH = 0.002  # seconds between two slices


class SelectableRows(RowScroller):
    """Rows whose text can be selected, also far out of sight. Abstract."""

    ALLOW_SELECT = True

    @property
    def document(self) -> Document:
        """The items as rows."""
        raise NotImplementedError

    def take_in(self) -> bool:
        """Take in what has changed in the items; False where there is no room to show any."""
        raise NotImplementedError

    def focus_on_click(self) -> bool:
        """A click leaves the keys where they go."""
        return False

    @property
    def allow_select(self) -> bool:
        """Text may be selected with the mouse."""
        return True

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text under a selection."""
        self.take_in()
        return selected_text(self.document, _point(selection.start), _point(selection.end)), "\n"

    def takes_long(self, then: Callable[[str | None], None]) -> bool:
        """Where what is selected is not had at once, hand it on later: None if the items were replaced."""
        selection = self.text_selection
        if selection is None:
            return False
        self.take_in()
        taking = Taking(self.document, _point(selection.start), _point(selection.end))
        if taking.goes_on(SLICE):
            self._take_more(taking, then)
            return True
        return False

    @work
    async def _take_more(self, taking: Taking, then: Callable[[str | None], None]) -> None:
        while True:
            await asyncio.sleep(_BREATH)
            self.take_in()
            if taking.is_lost(self.document):
                then(None)
                return
            if not taking.goes_on(SLICE):
                then(taking.text.rstrip("\n"))
                return

    def selection_updated(self, _selection: Selection | None) -> None:
        """Draw the selection."""
        self.refresh()

    def select(self, first: Point, last: Point) -> None:
        """Select from one point to another."""
        begin, end = (Offset(point.column, key_of(point.place)) for point in (first, last))
        self.screen.selections = {self: Selection.from_offsets(begin, end)}

    def select_around(self, row: Row, column: int, *, whole_line: bool) -> None:
        """Select the line that goes through a row, or the word at a character of it."""
        if whole_line:
            self.select(*line_at(self.document, row))
            return
        first, last = word_at(row, column)
        if first < last:
            self.select(Point(row.place, first), Point(row.place, last))


def _point(offset: Offset | None) -> Point | None:
    return Point(place_of_key(offset.y), offset.x) if offset is not None else None
