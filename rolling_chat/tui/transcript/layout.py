"""The layout of one item as small pieces, each drawn only when it comes into view."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rolling_chat.text import count_undecided, visible
from rolling_chat.tui.state.items import FOLDED_KINDS, Item, Kind, Status
from rolling_chat.tui.transcript.blocks import Block, Links, PlainSplitter
from rolling_chat.tui.transcript.colors import Look
from rolling_chat.tui.transcript.heights import Fenwick
from rolling_chat.tui.transcript.lines import Line, fitted
from rolling_chat.tui.transcript.render import body_lines, foot_lines, head_lines, lead_lines

if TYPE_CHECKING:
    from rolling_chat.tui.transcript.growing import Growing

KEPT_LINES = 8_000
_FED_CHARS = 16_384  # characters made safe for the terminal at a time
_SHORT_CALL = 60  # characters of a call that fit the head on most screens
_INITIAL_SECONDS = 0.02  # seconds of layout before an item is shown unfinished


class _Flow(Protocol):
    """The interface that `Splitter` and `PlainSplitter` have in common."""

    settled: list[Block]
    links: Links

    def feed(self, text: str) -> None: ...
    def end(self) -> None: ...
    def step(self) -> bool: ...
    def tail(self) -> list[Block]: ...


class Position(NamedTuple):
    """The position of a line: the indices of its item, its piece, and its row; positions grow downwards."""

    ordinal: int
    piece: int = 0
    line: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A line and its position."""

    position: Position
    line: Line


@dataclass(frozen=True, slots=True)
class Decorations:
    """The decorations of an item's text: empty lines and a rule above, a note at the right of its head."""

    gap: int = 0
    rule: str = ""
    note: str = ""


class Part(Enum):
    """The part of an item that a piece belongs to."""

    LEAD = "lead"
    HEAD = "head"
    BODY = "body"
    FOOT = "foot"


class Piece:
    """A few lines of an item that are drawn together; `lines` is None while they are not cached."""

    __slots__ = ("block", "lines", "links", "part")

    def __init__(self, part: Part, block: Block | None = None) -> None:
        self.part = part
        self.block = block
        self.lines: list[Line] | None = None
        self.links = 0  # number of link definitions known when it was drawn


class LineCache:
    """A cache of the lines of recently drawn pieces, some thousands of lines in total."""

    def __init__(self, max_lines: int = KEPT_LINES) -> None:
        self._max_lines = max_lines
        self._kept: OrderedDict[Piece, int] = OrderedDict()
        self._count = 0

    def keep(self, piece: Piece) -> None:
        """Mark a piece's drawn lines as just used, and drop the oldest lines beyond the limit."""
        lines = piece.lines or ()
        self._count += len(lines) - self._kept.pop(piece, 0)
        self._kept[piece] = len(lines)
        while self._count > self._max_lines and len(self._kept) > 1:
            oldest, count = self._kept.popitem(last=False)
            oldest.lines = None
            self._count -= count

    def forget(self, piece: Piece) -> None:
        """Remove a piece that is no longer needed."""
        self._count -= self._kept.pop(piece, 0)


class ItemLayout:
    """The pieces of one item in one look, laid out in slices as its text arrives."""

    def __init__(
        self,
        item: Item,
        look: Look,
        cache: LineCache,
        clock: Callable[[], float],
        *,
        is_open: bool,
        decorations: Decorations,
    ) -> None:
        self.item = item
        self.is_open = is_open
        self.pieces: list[Piece] = []
        self.heights = Fenwick()
        self._look = look
        self._cache = cache
        self._clock = clock
        self._decorations = decorations
        self._source = ""
        self._shown = 0  # characters of the source that were fed
        self._held = ""  # the end of the source, held back because more text may change its meaning
        self._above = ""  # the last two characters fed
        self._flow: _Flow = PlainSplitter()
        self._settled = 0  # settled blocks of the flow that have pieces
        self._is_behind = False  # the flow has more to settle
        self._body = 0  # index of the body's first piece
        self._growing: Growing | None = None
        self._begin()

    @property
    def height(self) -> int:
        """The item's height in rows; parts never drawn are estimated."""
        return self.heights.total

    @property
    def is_whole(self) -> bool:
        """Whether all of the item's text is laid out."""
        return not self._is_behind and self._shown >= len(self._source)

    def lines(self, at: int) -> list[Line]:
        """Return the lines of a piece, drawing them if they are not cached."""
        piece = self.pieces[at]
        if piece.lines is None or self._is_stale(piece):
            piece.lines = self._draw(piece, at)
            piece.links = len(self._flow.links)
            self.heights.set(at, len(piece.lines))
        self._cache.keep(piece)
        return piece.lines

    def take(self, item: Item, decorations: Decorations, *, is_open: bool) -> None:
        """Apply a changed item; text that only grew is laid out from its previous end on."""
        before, self.item = self.item, item
        source = _source(item, is_open=is_open)
        grew = is_open == self.is_open and item.kind is before.kind and source.startswith(self._source)
        self.is_open = is_open
        if not grew or (len(source) > len(self._source) and before.status is not Status.LIVE):
            self._decorations = decorations
            self._begin()
            return
        self._source = source
        self._redo(Part.HEAD)
        self._advance(_INITIAL_SECONDS)
        self.set_decorations(decorations)

    def set_decorations(self, decorations: Decorations) -> None:
        """Change the decorations of the item's text."""
        before, self._decorations = self._decorations, decorations
        if (before.gap, before.rule) != (decorations.gap, decorations.rule):
            self._redo(Part.LEAD)
        if before.note != decorations.note:
            self._redo(Part.HEAD)

    # -- rows

    def rows_from(self, position: Position, count: int) -> tuple[list[Row], bool]:
        """Return at most `count` rows from a position on, and whether they reach the end of the item."""
        rows: list[Row] = []
        ordinal, at, skip = position
        while at < len(self.pieces) and len(rows) < count:
            lines = self.lines(at)
            until = min(len(lines), skip + count - len(rows))
            rows += [Row(Position(ordinal, at, n), lines[n]) for n in range(skip, until)]
            at, skip = at + 1, 0
        return rows, at >= len(self.pieces) and self.is_whole

    def rows_above(self, position: Position, count: int) -> list[Row]:
        """Return at most `count` rows that end above a position, topmost first."""
        rows: list[Row] = []
        ordinal, at, end = position
        if at >= len(self.pieces):  # the item was folded since
            at, end = len(self.pieces), 0
        while len(rows) < count:
            if end:
                lines = self.lines(at)
                end = min(end, len(lines))
                first = max(0, end - (count - len(rows)))
                rows = [Row(Position(ordinal, at, n), lines[n]) for n in range(first, end)] + rows
            if not at:
                break
            at -= 1
            end = len(self.lines(at))
        return rows

    def end_of(self, ordinal: int) -> Position:
        """Return the position below the item's last row; `ordinal` is the item's index."""
        return Position(ordinal, len(self.pieces))

    def position_of(self, ordinal: int, row: int) -> Position:
        """Return the position of the item's row at index `row`, or of its last row laid out so far."""
        at, line = self.heights.find(min(row, max(0, self.height - 1)))
        at = min(at, len(self.pieces) - 1)
        return Position(ordinal, at, min(line, max(0, len(self.lines(at)) - 1)))

    def position_of_source(self, position: Position, source: int) -> Position:
        """Return the position of the line, in the piece of `position`, that shows index `source`."""
        at = min(position.piece, len(self.pieces) - 1)
        found = [n for n, line in enumerate(self.lines(at)) if line.at <= source]
        return Position(position.ordinal, at, found[-1] if found else 0)

    @property
    def begins_with_gap(self) -> bool:
        """Whether exactly one empty line is above the item's own lines."""
        return self.heights[0] == 1

    def advance(self, seconds: float) -> bool:
        """Lay out more of a long text, for about `seconds`; return False if it was complete."""
        if self.is_whole:
            return False
        self._advance(seconds)
        return True

    def drop(self) -> None:
        """Remove the item's pieces from the line cache."""
        for piece in self.pieces:
            self._cache.forget(piece)

    # -- laying out

    def _begin(self) -> None:
        self.drop()
        self.pieces, self.heights = [], Fenwick()
        item = self.item
        self._source = _source(item, is_open=self.is_open)
        self._shown, self._held, self._above, self._settled = 0, "", "", 0
        self._growing = _growing_of(item)
        self._flow = _flow_of(item)
        self._append(Piece(Part.LEAD))
        if item.kind in FOLDED_KINDS:
            self._append(Piece(Part.HEAD))
        self._body = len(self.pieces)
        self._advance(_INITIAL_SECONDS)

    def _advance(self, seconds: float) -> None:
        """Lay out more of the text for about `seconds`, and rebuild the pieces of its unsettled end."""
        self._is_behind = not self._settle_more(self._clock() + seconds)
        kept = {
            piece.block: piece
            for piece in self.pieces[self._body + self._settled :]
            if piece.block is not None
        }
        while len(self.pieces) > self._body + self._settled:
            self._pop()
        settled = self._flow.settled
        for block in settled[self._settled :]:
            self._append(kept.pop(block) if block in kept else Piece(Part.BODY, block))
        self._settled = len(settled)
        for block in () if self._is_behind else self._flow.tail():
            self._append(kept.pop(block) if block in kept else Piece(Part.BODY, block))
        for piece in kept.values():
            self._cache.forget(piece)
        self._append(Piece(Part.FOOT))

    def _settle_more(self, until: float) -> bool:
        """Settle text until the clock reaches `until`; return whether nothing is left to settle."""
        while True:
            while self._flow.step():
                if self._clock() > until:
                    return False
            if not self._feed():
                return True
            if self._clock() > until:
                return False

    def _feed(self) -> bool:
        """Pass a slice of the source to the splitter; return False if there is no more."""
        is_live = self.item.status is Status.LIVE
        if self._shown >= len(self._source):
            if not is_live:
                self._feed_visible(self._held)
                self._held = ""
                self._flow.end()
                return self._flow.step()
            return False
        fed = self._held + self._source[self._shown : self._shown + _FED_CHARS]
        self._shown = min(self._shown + _FED_CHARS, len(self._source))
        ready = len(fed) - count_undecided(fed)
        self._held = fed[ready:]
        self._feed_visible(fed[:ready])
        return True

    def _feed_visible(self, text: str) -> None:
        self._flow.feed(visible(text, tabs=True, above=self._above))
        self._above = (self._above + text)[-2:]

    def _append(self, piece: Piece) -> None:
        self.pieces.append(piece)
        self.heights.append(
            self._estimate(piece, len(self.pieces) - 1) if piece.lines is None else len(piece.lines)
        )

    def _pop(self) -> None:
        self.pieces.pop()
        self.heights.pop()

    def _redo(self, part: Part) -> None:
        for at, piece in enumerate(self.pieces[: self._body]):
            if piece.part is part:
                piece.lines = None
                self.lines(at)

    def _is_stale(self, piece: Piece) -> bool:
        return piece.links != len(self._flow.links) and piece.block is not None and "[" in piece.block.source

    def _estimate(self, piece: Piece, at: int) -> int:
        """Estimate the number of lines of a piece; one without a block is drawn and counted."""
        if piece.block is None:
            return len(self._draw(piece, at))
        return piece.block.gap + estimated_rows(piece.block.source, self._look.width)

    def _draw(self, piece: Piece, at: int) -> list[Line]:
        """Draw the lines of a piece, none wider than the look."""
        return [fitted(line, self._look.width) for line in self._lines_of(piece, at)]

    def _lines_of(self, piece: Piece, at: int) -> list[Line]:
        item, look = self.item, self._look
        match piece.part:
            case Part.LEAD:
                return lead_lines(self._decorations.gap, self._decorations.rule, look)
            case Part.HEAD:
                return head_lines(item, look, is_open=self.is_open, note=self._decorations.note)
            case Part.FOOT:
                return foot_lines(item, look)
            case Part.BODY if piece.block is not None:
                growing = self._growing if at >= self._body + self._settled else None
                lines = body_lines(
                    item, piece.block, look, self._flow.links, is_first=at == self._body, growing=growing
                )
                return [Line(()), *lines] if piece.block.gap else lines
        return []


def _flow_of(item: Item) -> _Flow:
    if item.kind is not Kind.ASSISTANT:
        return PlainSplitter()
    # import the parser with the first answer, not before the first paint
    from rolling_chat.tui.transcript.splitter import Splitter  # noqa: PLC0415

    return Splitter()


def _growing_of(item: Item) -> Growing | None:
    if item.kind is not Kind.ASSISTANT or item.status is not Status.LIVE:
        return None
    from rolling_chat.tui.transcript.growing import Growing  # noqa: PLC0415  # as the splitter

    return Growing()


def estimated_rows(text: str, width: int) -> int:
    """Estimate the number of rows of a text."""
    return 1 + text.count("\n") + len(text) // max(1, width)


def estimated_height(item: Item, width: int, *, is_open: bool) -> int:
    """Estimate the number of rows of an item that was never laid out."""
    if item.kind in FOLDED_KINDS and not is_open and not item.live:
        return 1
    return 1 + estimated_rows(_source(item, is_open=is_open), width)


def _source(item: Item, *, is_open: bool) -> str:
    """Return the text that an item shows below its head, folded or unfolded."""
    if item.kind in FOLDED_KINDS and not is_open:
        return item.live
    match item.kind:
        case Kind.TOOL:
            says_it_all = len(item.text) <= _SHORT_CALL and "\n" not in item.text
            return item.detail if says_it_all else f"{item.text}\n{item.detail}"
        case Kind.ATTACHED:
            return item.detail
        case _:
            return item.text


def text_when_open(item: Item) -> str:
    """Return the text that an item shows below its head when it is unfolded."""
    return _source(item, is_open=True)
