"""The part of the document in view; its state is the position of the top row, and offsets are derived."""

from __future__ import annotations

from collections.abc import Collection

from rolling_chat.tui.state.items import Kind
from rolling_chat.tui.transcript.colors import Look
from rolling_chat.tui.transcript.document import Document
from rolling_chat.tui.transcript.layout import Position, Row

MESSAGES = (Kind.USER, Kind.ASSISTANT)


class Viewport:
    """The `height` rows of a document that are in view: its end, followed as it grows, or another part.

    `rows` are drawn; there are fewer than `height` if the document has no more. `is_new_below`: something
    was added below the view.
    """

    def __init__(self, document: Document, height: int = 0) -> None:
        self.document = document
        self.height = height
        self.follow = True
        self.rows: list[Row] = []
        self.is_new_below = False
        self._is_held = False  # stay in place even at the end
        self._anchor = Position(0)
        self._anchor_id = ""
        self._source: int | None = None  # source index of the top row before a resize; None after a move
        self._begun = 0
        self._prepared = -1  # the document's revision when `rows` were laid out

    @property
    def top(self) -> int:
        """The number of rows above the view; rows never drawn are estimated."""
        if self.follow or not self.rows:
            return max(0, self.total - self.height)
        return min(self.document.row(self.rows[0].position), max(0, self.total - self.height))

    @property
    def total(self) -> int:
        """The number of rows in the document; rows never drawn are estimated."""
        return self.document.total

    @property
    def anchor(self) -> Position:
        """The position of the top row."""
        return self.rows[0].position if self.rows else self._anchor

    def update(self) -> None:
        """Lay out the rows in view from the document's current state, without moving the view."""
        self._follow_changes()
        if self._prepared != self.document.revision:
            self._prepare()

    def _begin_move(self) -> None:
        """Update the rows before a move, if any were laid out."""
        if self.rows:
            self.update()

    def _follow_changes(self) -> None:
        newest = self.document.take_newest_change()
        if self._begun != self.document.begun:
            self._begun = self.document.begun
            self._relocate_anchor()
        lowest = self.rows[-1].position.ordinal if self.rows else 0
        is_new = newest is not None and newest >= lowest
        self.is_new_below = not self.follow and (self.is_new_below or is_new)

    def _prepare(self) -> None:
        """Lay out the rows in view."""
        document = self.document
        is_end = self.follow
        if not self.follow:
            self.rows, ends = document.forward(self._anchor, self.height)
            is_end = (ends and len(self.rows) < self.height) or not self._is_below()
        if is_end:
            if not self._is_held:
                self.follow, self.is_new_below, self._source = True, False, None
            self.rows = document.backward(document.end, self.height)
        self._anchor = self.rows[0].position if self.rows else document.end
        ordinal = self._anchor.ordinal
        self._anchor_id = document.items.at(ordinal).id if ordinal in document.ordinals else ""
        self._prepared = document.revision

    def _relocate_anchor(self) -> None:
        """Find the item at the top among the replaced items; if it is gone, follow the end."""
        ordinal = self.document.items.by_id.get(self._anchor_id)
        if ordinal is None:
            self.follow = True
        else:
            self._anchor = self._anchor._replace(ordinal=ordinal)

    def resize(self, look: Look, height: int) -> None:
        """Change the look and the height, keeping the top row's text at the top."""
        self._follow_changes()
        self.height = height
        if look != self.document.look:
            if self.rows and self._source is None:
                self._source = self.rows[0].line.at
            self.document.set_look(look)
            if self._source is not None and not self.follow:
                self._anchor = self.document.at_source(self._anchor, self._source)
        self._prepare()

    # -- moving

    def move(self, lines: int) -> None:
        """Scroll by lines; reaching the end resumes following it."""
        self._begin_move()
        if not self.rows or not lines:
            return
        if lines < 0:
            above = self.document.backward(self.anchor, -lines)
            # nothing above may be an unfinished layout: lay out a slice, so that scrolling never stalls
            if not above and self.document.advance_above(self.anchor):
                above = self.document.backward(self.anchor, -lines)
            if not above:
                return
            self._scroll_to(above[0].position)
            return
        below = self.document.forward(self.anchor, lines + 1).rows
        self._scroll_to(below[-1].position)

    def hold(self) -> None:
        """Stop following the end, until the next move."""
        self._begin_move()
        self.follow, self._is_held = False, True
        self._prepare()

    def release(self) -> None:
        """End a hold: follow the end again as soon as it is in view."""
        self._is_held = False
        if self.rows:
            self._follow_changes()
            self._prepare()

    def to_start(self) -> None:
        """Scroll to the first line."""
        self._begin_move()
        self._scroll_to(self.document.first)

    def to_end(self) -> None:
        """Scroll to the end and follow it."""
        self.follow, self.is_new_below, self._source, self._is_held = True, False, None, False
        self._follow_changes()
        self._prepare()

    def to_row(self, row: int) -> None:
        """Scroll so that a row, counted from the top of the whole document, is the first in view."""
        self._begin_move()
        if row >= self.total - self.height:
            self.to_end()
        else:
            self._scroll_to(self.document.position(max(0, row)))

    def to_position(self, position: Position, above: int = 0) -> None:
        """Scroll to a position, with `above` rows above it."""
        self._begin_move()
        before = self.document.backward(position, above) if above else []
        self._scroll_to(before[0].position if before else position)

    def by_items(self, step: int, kinds: Collection[Kind] = MESSAGES) -> None:
        """Scroll to the next or previous item of some kinds; past the last, to the end."""
        self._begin_move()
        items, here = self.document.items, self.anchor
        ordinal = here.ordinal
        inside = bool(self.rows) and here != self.document.beginning(ordinal)
        ordinal += 0 if step < 0 and inside else step
        while ordinal in self.document.ordinals and items.at(ordinal).kind not in kinds:
            ordinal += step
        if ordinal in self.document.ordinals:
            self._scroll_to(self.document.beginning(ordinal))
        elif step > 0:
            self.to_end()
        else:
            self.to_start()

    def _scroll_to(self, position: Position) -> None:
        """Scroll to a position, or to the end if fewer rows than the view's height follow it."""
        if self._prepared < 0:  # nothing was shown yet, and the view may have no size
            self.to_end()
            return
        self.follow, self._anchor, self._source, self._is_held = False, position, None, False
        self._prepare()
        if not self._is_below():
            self.to_end()

    def _is_below(self) -> bool:
        """Return whether anything is, or will be, below the view."""
        after = self.rows[-1].position if self.rows else self.document.first
        left = self.document.forward(after._replace(line=after.line + 1), 1)
        return bool(left.rows) or not left.is_end
