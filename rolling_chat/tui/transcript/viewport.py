"""What part of the document is looked at. The place at the top is the truth, all offsets are derived."""

from __future__ import annotations

from collections.abc import Collection

from rolling_chat.tui.state.items import Kind
from rolling_chat.tui.transcript.colors import Look
from rolling_chat.tui.transcript.document import Document
from rolling_chat.tui.transcript.layout import Place, Row

MESSAGES = (Kind.USER, Kind.ASSISTANT)


class Viewport:
    """`height` rows of a document: its end, followed as it grows, or what the person moved to.

    `rows` are drawn; fewer than `height` where there are no more. `is_new_below` says that something
    came below what is looked at.
    """

    def __init__(self, document: Document, height: int = 0) -> None:
        self.document = document
        self.height = height
        self.follow = True
        self.rows: list[Row] = []
        self.is_new_below = False
        self._is_held = False  # does it stay although there is nothing below?
        self._anchor = Place(0)
        self._anchor_id = ""
        self._source: int | None = None  # what stood at the top before the size changed, since the last move
        self._begun = 0
        self._prepared = -1  # the revision of the document that `rows` are of

    @property
    def top(self) -> int:
        """How many rows are above what is looked at, as far as they are known."""
        if self.follow or not self.rows:
            return max(0, self.total - self.height)
        return min(self.document.row(self.rows[0].place), max(0, self.total - self.height))

    @property
    def total(self) -> int:
        """How many rows there are, as far as they are known."""
        return self.document.total

    @property
    def anchor(self) -> Place:
        """The place at the top row."""
        return self.rows[0].place if self.rows else self._anchor

    def update(self) -> None:
        """Lay out the rows that are looked at as the document is now; what is looked at stays."""
        self._follow_changes()
        if self._prepared != self.document.revision:
            self._prepare()

    def _begin_move(self) -> None:
        """Whatever moves begins from what is there now."""
        if self.rows:
            self.update()

    def _follow_changes(self) -> None:
        newest = self.document.take_newest_change()
        if self._begun != self.document.begun:
            self._begun = self.document.begun
            self._find_again()
        lowest = self.rows[-1].place.ordinal if self.rows else 0
        is_new = newest is not None and newest >= lowest
        self.is_new_below = not self.follow and (self.is_new_below or is_new)

    def _prepare(self) -> None:
        """Lay out the rows that are looked at."""
        document = self.document
        is_end = self.follow
        if not self.follow:
            self.rows, ends = document.forward(self._anchor, self.height)
            is_end = (ends and len(self.rows) < self.height) or not self._is_below()
        if is_end:
            if not self._is_held:
                self.follow, self.is_new_below, self._source = True, False, None
            self.rows = document.backward(document.end, self.height)
        self._anchor = self.rows[0].place if self.rows else document.end
        ordinal = self._anchor.ordinal
        self._anchor_id = document.items.at(ordinal).id if ordinal in document.ordinals else ""
        self._prepared = document.revision

    def _find_again(self) -> None:
        """Of other items, what is looked at is the one of the same name, else the end."""
        ordinal = self.document.items.by_id.get(self._anchor_id)
        if ordinal is None:
            self.follow = True
        else:
            self._anchor = self._anchor._replace(ordinal=ordinal)

    def resize(self, look: Look, height: int) -> None:
        """Another size: the text at the top row stays at the top row."""
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
        """Move by lines; whoever comes to the end follows it."""
        self._begin_move()
        if not self.rows or not lines:
            return
        if lines < 0:
            above = self.document.backward(self.anchor, -lines)
            if not above:
                return
            self._go(above[0].place)
            return
        below = self.document.forward(self.anchor, lines + 1).rows
        self._go(below[-1].place)

    def hold(self) -> None:
        """Stay where it is, also at the end, until somebody moves."""
        self._begin_move()
        self.follow, self._is_held = False, True
        self._prepare()

    def let_go(self) -> None:
        """Who holds at the end follows it again, and who holds above it does once that is in sight."""
        self._is_held = False
        if self.rows:
            self._follow_changes()
            self._prepare()

    def to_start(self) -> None:
        """The first line."""
        self._begin_move()
        self._go(self.document.first)

    def to_end(self) -> None:
        """The end, and follow it; the items may be others by now."""
        self.follow, self.is_new_below, self._source, self._is_held = True, False, None, False
        self._follow_changes()
        self._prepare()

    def to_row(self, row: int) -> None:
        """A row as the scroll bar has it."""
        self._begin_move()
        if row >= self.total - self.height:
            self.to_end()
        else:
            self._go(self.document.place(max(0, row)))

    def to_place(self, place: Place, above: int = 0) -> None:
        """A place, with some rows above it."""
        self._begin_move()
        before = self.document.backward(place, above) if above else []
        self._go(before[0].place if before else place)

    def by_items(self, step: int, kinds: Collection[Kind] = MESSAGES) -> None:
        """To the beginning of the next or the previous item of some kinds; past the last to the end."""
        self._begin_move()
        items, here = self.document.items, self.anchor
        ordinal = here.ordinal
        inside = bool(self.rows) and here != self.document.beginning(ordinal)
        ordinal += 0 if step < 0 and inside else step
        while ordinal in self.document.ordinals and items.at(ordinal).kind not in kinds:
            ordinal += step
        if ordinal in self.document.ordinals:
            self._go(self.document.beginning(ordinal))
        elif step > 0:
            self.to_end()
        else:
            self.to_start()

    def _go(self, place: Place) -> None:
        """Have a place at the top, or the end where there is less below it than the screen has rows."""
        if self._prepared < 0:  # nothing was shown yet: the view may have no size
            self.to_end()
            return
        self.follow, self._anchor, self._source, self._is_held = False, place, None, False
        self._prepare()
        if not self._is_below():
            self.to_end()

    def _is_below(self) -> bool:
        """Is there something below what is looked at, or will there be?"""
        after = self.rows[-1].place if self.rows else self.document.first
        left = self.document.forward(after._replace(line=after.line + 1), 1)
        return bool(left.rows) or not left.is_end
