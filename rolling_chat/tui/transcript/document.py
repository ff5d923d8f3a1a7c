"""The whole transcript as rows: items in view are laid out, the heights of all others are estimated."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rolling_chat.tui.state.fates import Fates
from rolling_chat.tui.state.item_list import ItemList
from rolling_chat.tui.state.items import FOLDED_KINDS, Item, Kind, Status
from rolling_chat.tui.transcript.colors import Look
from rolling_chat.tui.transcript.heights import Heights
from rolling_chat.tui.transcript.layout import (
    Decorations,
    ItemLayout,
    LineCache,
    Position,
    Row,
    estimated_height,
)
from rolling_chat.tui.transcript.render import gap_before

_KEPT_LAYOUTS = 256
SLICE = 0.008  # seconds of layout at a time, so that keys are handled in between
_STRETCH = 24  # rows: drawing this many rows of code takes about as long


class Stretch(NamedTuple):
    """Consecutive rows; `is_end` means that no row follows them, now or after more layout."""

    rows: list[Row]
    is_end: bool


class Document:
    """The items of a transcript as rows in one look; every read first syncs changes of the items.

    A text that takes long is laid out in slices, timed by `clock` in seconds (`unfinished`, `advance`).
    """

    def __init__(
        self, items: ItemList, look: Look, *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.items = items
        self.look = look
        self.all_open = False
        self.begun = 0  # how often all items were replaced
        self.fates = Fates()
        self.revision = 0  # incremented by anything that may change a row
        self._heights = Heights()
        self._newest_change: int | None = None
        self._clock = clock
        self._toggled: set[str] = set()  # ids of items in the opposite state of `all_open`
        self._layouts: OrderedDict[int, ItemLayout] = OrderedDict()
        self._cache = LineCache()

    # -- changes

    def sync(self) -> None:
        """Apply the changes of the items since the last call."""
        changes = self.items.take_changes()
        if changes is None:
            return
        self.revision += 1
        heights, ordinals, before = self._heights, self.items.ordinals, self._heights.end
        if changes.is_new:
            self._drop_from(None)
            heights = self._heights = Heights()
            self.begun += 1
        elif changes.cut is not None:
            self._drop_from(changes.cut)
            heights.cut(changes.cut)
        heights.cut(ordinals.stop)
        for ordinal in range(heights.end, ordinals.stop):
            heights.below.append(self._estimated_height(ordinal))
        for ordinal in range(heights.start - 1, ordinals.start - 1, -1):
            heights.above.append(self._estimated_height(ordinal))
        for ordinal in changes.changed:
            if ordinal in ordinals:
                self._change(ordinal)
        self._note_change(max(changes.changed, default=None))
        if heights.end > before:
            self._note_change(heights.end - 1)

    def take_newest_change(self) -> int | None:
        """Return the highest item index that was added or changed since the last call, if any."""
        self.sync()
        taken, self._newest_change = self._newest_change, None
        return taken

    def _note_change(self, ordinal: int | None) -> None:
        if ordinal is not None:
            self._newest_change = max(ordinal, self._newest_change or ordinal)

    def _sync_layouts(self) -> None:
        """Call `sync` before layouts are changed, so that none belongs to a removed item."""
        if self._layouts:
            self.sync()

    def set_look(self, look: Look) -> None:
        """Change the width or the colors; known heights become estimates."""
        if look != self.look:
            self.look = look
            self._drop_from(None)
            self.revision += 1

    def set_fates(self, fates: Fates) -> None:
        """Set the items' fates in the next request; only the lines around their text change."""
        self._sync_layouts()
        self.fates = fates
        self.revision += 1
        for ordinal, layout in self._layouts.items():
            layout.set_decorations(self._decorations(ordinal, layout.item))
            self._heights.set(ordinal, layout.height)

    def open_all(self, *, is_open: bool) -> None:
        """Unfold or fold all reasoning and tool results."""
        self._sync_layouts()
        self.all_open = is_open
        self._toggled.clear()
        self.revision += 1
        for ordinal, layout in self._layouts.items():
            self._update_layout(ordinal, layout)

    def turn(self, ordinal: int) -> None:
        """Fold or unfold an item."""
        self._sync_layouts()
        item = self.items.at(ordinal)
        if item.kind not in FOLDED_KINDS:
            return
        self._toggled ^= {item.id}
        self.revision += 1
        if ordinal in self._layouts:
            self._update_layout(ordinal, self._layouts[ordinal])

    def is_open(self, item: Item) -> bool:
        """Return whether an item is unfolded; the output of a running tool always is."""
        if item.kind is Kind.TOOL and item.status is Status.LIVE and item.result and not item.live:
            return True
        return self.all_open != (item.id in self._toggled)

    # -- positions

    @property
    def ordinals(self) -> range:
        """The range of the items' indices, negative for items added on top."""
        self.sync()
        return self._heights.ordinals

    @property
    def total(self) -> int:
        """The number of rows; items never drawn are estimated."""
        return self._heights.total

    @property
    def first(self) -> Position:
        """The position of the first line."""
        return Position(self.ordinals.start)

    @property
    def end(self) -> Position:
        """The position below the last line."""
        return Position(self.ordinals.stop)

    def forward(self, position: Position, count: int) -> Stretch:
        """Return up to `count` rows from a position on; fewer at the end or in an unfinished text."""
        rows: list[Row] = []
        ordinals = self.ordinals
        position = max(position, Position(ordinals.start))
        while position.ordinal < ordinals.stop and len(rows) < count:
            layout = self._layout(position.ordinal)
            more, is_all = layout.rows_from(position, count - len(rows))
            self._heights.set(position.ordinal, layout.height)
            rows += more
            if not is_all:
                return Stretch(rows, is_end=False)
            position = Position(position.ordinal + 1)
        return Stretch(rows, is_end=position.ordinal >= ordinals.stop)

    def backward(self, position: Position, count: int) -> list[Row]:
        """Return up to `count` rows that end above a position, topmost first."""
        rows: list[Row] = []
        ordinals = self.ordinals
        position = min(position, Position(ordinals.stop))
        if position.ordinal in ordinals:
            rows = self._rows_above(position, count)
        for ordinal in range(position.ordinal - 1, ordinals.start - 1, -1):
            if len(rows) >= count:
                break
            layout = self._layout(ordinal)
            if not layout.is_whole and ordinal != ordinals.stop - 1:
                break
            rows = self._rows_above(layout.end_of(ordinal), count - len(rows)) + rows
        return rows

    def _rows_above(self, position: Position, count: int) -> list[Row]:
        layout = self._layout(position.ordinal)
        rows = layout.rows_above(position, count)
        self._heights.set(position.ordinal, layout.height)
        return rows

    def stretches(self, position: Position) -> Iterator[list[Row]]:
        """Yield all rows from a position on in parts; after more layout of a long text, an empty part."""
        while position.ordinal < self.ordinals.stop:
            ordinal = max(position.ordinal, self.ordinals.start)
            layout = self._layout(ordinal)
            # the last piece of an unfinished text is its foot, and more text goes above that
            stop = Position(ordinal + 1) if layout.is_whole else Position(ordinal, len(layout.pieces) - 1)
            rows = [row for row in self.forward(position, _STRETCH).rows if row.position < stop]
            if rows:
                position = rows[-1].position._replace(line=rows[-1].position.line + 1)
            elif layout.is_whole:
                position = stop
            else:
                self.advance(ordinal, SLICE)
            yield rows

    def row(self, position: Position) -> int:
        """Return how many rows are above a position; rows never drawn are estimated."""
        if position.ordinal >= self.ordinals.stop:
            return self.total
        layout = self._layouts.get(position.ordinal)
        within = layout.heights.before(position.piece) if layout is not None else 0
        return self._heights.before(position.ordinal) + within + position.line

    def position(self, row: int) -> Position:
        """Return the position of the row that has `row` rows above it."""
        ordinals = self.ordinals
        ordinal, left = self._heights.find(row)
        if ordinal >= ordinals.stop:
            return self.end
        layout = self._layout(ordinal)
        position = layout.position_of(ordinal, left)
        self._heights.set(ordinal, layout.height)
        return position

    def beginning(self, ordinal: int) -> Position:
        """Return the position where an item begins, below the empty line above it."""
        if ordinal not in self.ordinals:
            return self.end
        return Position(ordinal, 1 if self._layout(ordinal).begins_with_gap else 0)

    def end_of(self, ordinal: int) -> Position:
        """Return the position below an item's last line."""
        return self.layout(ordinal).end_of(ordinal)

    def at_source(self, position: Position, source: int) -> Position:
        """Return the position of the line that shows source index `source`, in the piece of `position`."""
        if position.ordinal not in self.ordinals:
            return position
        layout = self._layout(position.ordinal)
        found = layout.position_of_source(position, source)
        self._heights.set(position.ordinal, layout.height)
        return found

    # -- layouts

    def layout(self, ordinal: int) -> ItemLayout:
        """Return the layout of an item."""
        self.sync()
        return self._layout(ordinal)

    def unfinished(self) -> int | None:
        """Return the index of a cached item whose text is not completely laid out, if any."""
        return next((ordinal for ordinal, layout in self._layouts.items() if not layout.is_whole), None)

    def advance(self, ordinal: int, seconds: float) -> None:
        """Lay out more of a long text, for about `seconds`."""
        layout = self._layouts.get(ordinal)
        if layout is not None and layout.advance(seconds):
            self._heights.set(ordinal, layout.height)
            self.revision += 1

    def advance_above(self, position: Position) -> bool:
        """Lay out more of the item above a position; return whether it was unfinished."""
        ordinal = position.ordinal - 1
        if ordinal not in self.ordinals or self._layout(ordinal).is_whole:
            return False
        self.advance(ordinal, SLICE)
        return True

    def _layout(self, ordinal: int) -> ItemLayout:
        layout = self._layouts.get(ordinal)
        if layout is not None:
            self._layouts.move_to_end(ordinal)
            return layout
        item = self.items.at(ordinal)
        layout = ItemLayout(
            item, self.look, self._cache, self._clock,
            is_open=self.is_open(item), decorations=self._decorations(ordinal, item),
        )  # fmt: skip
        self._layouts[ordinal] = layout
        self._heights.set(ordinal, layout.height)
        if len(self._layouts) > _KEPT_LAYOUTS:
            _, oldest = self._layouts.popitem(last=False)
            oldest.drop()
        return layout

    def _change(self, ordinal: int) -> None:
        layout = self._layouts.get(ordinal)
        if layout is None:
            self._heights.set(ordinal, self._estimated_height(ordinal))
        else:
            self._update_layout(ordinal, layout)

    def _update_layout(self, ordinal: int, layout: ItemLayout) -> None:
        item = self.items.at(ordinal)
        layout.take(item, self._decorations(ordinal, item), is_open=self.is_open(item))
        self._heights.set(ordinal, layout.height)

    def _decorations(self, ordinal: int, item: Item) -> Decorations:
        above = self.items.at(ordinal - 1) if ordinal > self.items.ordinals.start else None
        fate = self.fates.items.get(item.id)
        rule = self.fates.rule if item.id == self.fates.boundary else ""
        note = (fate.note if fate is not None else "") or item.note
        return Decorations(gap_before(item, above), rule, note)

    def _estimated_height(self, ordinal: int) -> int:
        item = self.items.at(ordinal)
        return estimated_height(item, self.look.width, is_open=self.is_open(item))

    def _drop_from(self, ordinal: int | None) -> None:
        for kept in [kept for kept in self._layouts if ordinal is None or kept >= ordinal]:
            self._layouts.pop(kept).drop()
