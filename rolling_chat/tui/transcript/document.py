"""The whole transcript as rows: what is looked at is laid out, all else is reckoned."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rolling_chat.tui.state.item_list import Changes, ItemList
from rolling_chat.tui.state.items import FOLDED_KINDS, Item
from rolling_chat.tui.transcript.colors import Look
from rolling_chat.tui.transcript.heights import Heights
from rolling_chat.tui.transcript.layout import ItemLayout, LineCache, height_about
from rolling_chat.tui.transcript.lines import Line
from rolling_chat.tui.transcript.render import gap_before

_KEPT_LAYOUTS = 256
SLICE = 0.008  # seconds of laying out at a time, so that keys are answered in between
_STRETCH = 24  # rows: to draw so much code takes as long


class Place(NamedTuple):
    """A line: of which item, which piece of it, and which line of that. Places grow downwards."""

    ordinal: int
    piece: int = 0
    line: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A line and where it stands."""

    place: Place
    line: Line


class Stretch(NamedTuple):
    """Rows one below the other; `is_end`: below them there is nothing, and nothing will be laid out."""

    rows: list[Row]
    is_end: bool


@dataclass(frozen=True, slots=True)
class ItemFacts:
    """What is said of an item by others: the rule above it, and the note at the right of its head."""

    rule: str = ""
    note: str = ""


class Document:
    """Items as rows of one look. `facts` says what stands around an item beside what it says itself.

    By `clock`, in seconds, a text that takes long is laid out in slices (`unfinished`, `advance`).
    """

    def __init__(
        self,
        items: ItemList,
        look: Look,
        facts: Callable[[str], ItemFacts],
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.items = items
        self.look = look
        self.all_open = False
        self.heights = Heights()
        self.begun = 0  # how often all items were others
        self._facts = facts
        self._clock = clock
        self._turned: set[str] = set()  # items that are not as `all_open` says
        self._layouts: OrderedDict[int, ItemLayout] = OrderedDict()
        self._cache = LineCache()

    # -- changes

    def sync(self) -> Changes:
        """Take in what has changed in the items; returns it."""
        changes, ordinals = self.items.take_changes(), self.items.ordinals
        if changes.is_new:
            self._drop_from(None)
            self.heights = Heights()
            self.begun += 1
        elif changes.cut is not None:
            self._drop_from(changes.cut)
            while self.heights.end > changes.cut:
                self.heights.pop()
        while self.heights.end > ordinals.stop:
            self.heights.pop()
        for ordinal in range(self.heights.end, ordinals.stop):
            self.heights.append(self._about(ordinal))
        for ordinal in range(self.heights.start - 1, ordinals.start - 1, -1):
            self.heights.prepend(self._about(ordinal))
        for ordinal in changes.changed:
            if ordinal in ordinals:
                self._change(ordinal)
        return changes

    def set_look(self, look: Look) -> None:
        """Another width, or other colours; heights that were right are guesses now."""
        if look != self.look:
            self.look = look
            self._drop_from(None)

    def open_all(self, *, is_open: bool) -> None:
        """Open or fold all thinking and all of the tools' work."""
        self.all_open = is_open
        self._turned.clear()
        for ordinal, layout in self._layouts.items():
            self._take(ordinal, layout)

    def turn(self, ordinal: int) -> None:
        """Open what is folded, or fold what is open."""
        item = self.items.at(ordinal)
        if item.kind not in FOLDED_KINDS:
            return
        self._turned ^= {item.id}
        if ordinal in self._layouts:
            self._take(ordinal, self._layouts[ordinal])

    def is_open(self, item: Item) -> bool:
        """Is an item unfolded?"""
        return self.all_open != (item.id in self._turned)

    def facts_changed(self) -> None:
        """What is said of the items is not what it was."""
        for ordinal, layout in self._layouts.items():
            facts = self._facts(layout.item.id)
            layout.set_lead(self._gap(ordinal), facts.rule)
            layout.set_note(facts.note or layout.item.note)
            self.heights.set(ordinal, layout.height)

    # -- places

    @property
    def first(self) -> Place:
        """The first line."""
        return Place(self.ordinals.start)

    def forward(self, place: Place, count: int) -> Stretch:
        """`count` rows from a place on, drawn; fewer at the end, or where a long text is not laid out yet."""
        rows: list[Row] = []
        ordinals = self.ordinals
        ordinal, at, skip = max(place.ordinal, ordinals.start), place.piece, place.line
        if ordinal != place.ordinal:
            at = skip = 0
        while ordinal < ordinals.stop and len(rows) < count:
            layout = self.layout(ordinal)
            while at < len(layout.pieces) and len(rows) < count:
                lines = self._lines(ordinal, layout, at)
                until = skip + count - len(rows)
                rows += [Row(Place(ordinal, at, n), lines[n]) for n in range(skip, min(len(lines), until))]
                at, skip = at + 1, 0
            if at < len(layout.pieces) or not layout.is_whole:
                return Stretch(rows, is_end=False)
            ordinal, at = ordinal + 1, 0
        return Stretch(rows, is_end=ordinal >= ordinals.stop)

    def backward(self, place: Place, count: int) -> list[Row]:
        """`count` rows that end above a place, drawn, the uppermost first."""
        rows: list[Row] = []
        ordinals = self.ordinals
        ordinal, at, end = place
        if ordinal >= ordinals.stop:
            ordinal, at, end = ordinals.stop, 0, 0
        elif ordinal in ordinals and at >= len(self.layout(ordinal).pieces):  # it was folded
            at, end = len(self.layout(ordinal).pieces), 0
        while len(rows) < count:
            if end:
                layout = self.layout(ordinal)
                lines = self._lines(ordinal, layout, at)
                first = max(0, min(end, len(lines)) - (count - len(rows)))
                part = [Row(Place(ordinal, at, n), lines[n]) for n in range(first, min(end, len(lines)))]
                rows = part + rows
            if at:
                at -= 1
            else:
                ordinal -= 1
                if ordinal < ordinals.start:
                    break
                layout = self.layout(ordinal)
                if not layout.is_whole and ordinal != ordinals.stop - 1:
                    break
                at = len(layout.pieces) - 1
            end = len(self._lines(ordinal, self.layout(ordinal), at))
        return rows

    def stretches(self, place: Place) -> Iterator[list[Row]]:
        """All rows from a place on, some at a time, none where more of a long text was laid out instead."""
        while place.ordinal < self.ordinals.stop:
            ordinal = max(place.ordinal, self.ordinals.start)
            layout = self.layout(ordinal)
            # what ends an unfinished text is drawn below what there is of it
            stop = Place(ordinal + 1) if layout.is_whole else Place(ordinal, len(layout.pieces) - 1)
            rows = [row for row in self.forward(place, _STRETCH).rows if row.place < stop]
            if rows:
                place = rows[-1].place._replace(line=rows[-1].place.line + 1)
            elif layout.is_whole:
                place = stop
            else:
                self.advance(ordinal, SLICE)
            yield rows

    @property
    def ordinals(self) -> range:
        """The ordinals of the items that were taken in."""
        return range(self.heights.start, self.heights.end)

    @property
    def end(self) -> Place:
        """The place below the last line."""
        return Place(self.ordinals.stop)

    def row(self, place: Place) -> int:
        """About how many rows are above a place; exact where all of them were drawn once."""
        if place.ordinal >= self.ordinals.stop:
            return self.heights.total
        within = (
            self._layouts[place.ordinal].heights.before(place.piece) if place.ordinal in self._layouts else 0
        )
        return self.heights.before(place.ordinal) + within + place.line

    def place(self, row: int) -> Place:
        """The place of a row, as far as it is known."""
        ordinal, left = self.heights.find(row)
        if ordinal >= self.ordinals.stop:
            return self.end
        layout = self.layout(ordinal)
        if layout.height <= left:
            left = max(0, layout.height - 1)
        at, line = layout.heights.find(left)
        at = min(at, len(layout.pieces) - 1)
        return Place(ordinal, at, min(line, max(0, len(self._lines(ordinal, layout, at)) - 1)))

    def beginning(self, ordinal: int) -> Place:
        """Where an item begins, below the empty line above it."""
        if ordinal not in self.ordinals:
            return self.end
        is_gap = self.layout(ordinal).heights[0] == 1  # nothing but the empty line
        return Place(ordinal, 1 if is_gap else 0, 0)

    def at_source(self, place: Place, source: int) -> Place:
        """The line of a piece in which a place of the source stands: the text at the top stays there."""
        if place.ordinal not in self.ordinals:
            return place
        layout = self.layout(place.ordinal)
        at = min(place.piece, len(layout.pieces) - 1)
        lines = self._lines(place.ordinal, layout, at)
        found = [n for n, line in enumerate(lines) if line.at <= source]
        return Place(place.ordinal, at, found[-1] if found else 0)

    # -- layouts

    def layout(self, ordinal: int) -> ItemLayout:
        """The layout of an item."""
        layout = self._layouts.get(ordinal)
        if layout is not None:
            self._layouts.move_to_end(ordinal)
            return layout
        item = self.items.at(ordinal)
        facts = self._facts(item.id)
        layout = ItemLayout(
            item, self.look, self._cache, self._clock, is_open=self.is_open(item),
            gap=self._gap(ordinal), rule=facts.rule, note=facts.note or item.note,
        )  # fmt: skip
        self._layouts[ordinal] = layout
        self.heights.set(ordinal, layout.height)
        if len(self._layouts) > _KEPT_LAYOUTS:
            _, oldest = self._layouts.popitem(last=False)
            oldest.drop()
        return layout

    def unfinished(self) -> Iterator[int]:
        """The items whose text is not all laid out, among those that are kept."""
        return (ordinal for ordinal, layout in list(self._layouts.items()) if not layout.is_whole)

    def advance(self, ordinal: int, seconds: float) -> None:
        """Lay out more of a long text, for about so long."""
        layout = self._layouts.get(ordinal)
        if layout is not None and layout.advance(seconds):
            self.heights.set(ordinal, layout.height)

    def _lines(self, ordinal: int, layout: ItemLayout, at: int) -> list[Line]:
        before = layout.heights[at]
        lines = layout.lines(at)
        if len(lines) != before:
            self.heights.set(ordinal, layout.height)
        return lines

    def _change(self, ordinal: int) -> None:
        layout = self._layouts.get(ordinal)
        if layout is None:
            self.heights.set(ordinal, self._about(ordinal))
        else:
            self._take(ordinal, layout)

    def _take(self, ordinal: int, layout: ItemLayout) -> None:
        item = self.items.at(ordinal)
        facts = self._facts(item.id)
        layout.take(item, is_open=self.is_open(item))
        layout.set_lead(self._gap(ordinal), facts.rule)
        layout.set_note(facts.note or item.note)
        self.heights.set(ordinal, layout.height)

    def _gap(self, ordinal: int) -> int:
        above = self.items.at(ordinal - 1) if ordinal > self.ordinals.start else None
        return gap_before(self.items.at(ordinal), above)

    def _about(self, ordinal: int) -> int:
        item = self.items.at(ordinal)
        return height_about(item, self.look.width, is_open=self.is_open(item))

    def _drop_from(self, ordinal: int | None) -> None:
        for kept in [kept for kept in self._layouts if ordinal is None or kept >= ordinal]:
            self._layouts.pop(kept).drop()
