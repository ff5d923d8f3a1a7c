"""Draw rows as strips of cells, with marks, selection and cursor over them, and cache the strips."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.strip import Strip

from rolling_chat.tui.transcript.colors import Look, Palette
from rolling_chat.tui.transcript.finding import Marked
from rolling_chat.tui.transcript.layout import Position
from rolling_chat.tui.transcript.lines import Line
from rolling_chat.tui.transcript.render import LIVE_MARK
from rolling_chat.tui.transcript.selection import key_of

_HIT = Style(bold=True, underline=True)
_CURRENT = Style(bold=True, reverse=True)
_NEWS = " ↓ new below "
_KEPT_ROWS = 500


def cell_of(strip: Strip, position: int) -> int:
    """Return the cell at which the character at index `position` begins."""
    return cell_len(strip.text[:position])


def recolored(strip: Strip, style: Style) -> Strip:
    """Return a row with `style` applied to all of it."""
    return Strip(
        [Segment(text, (own or Style()) + style, control) for text, own, control in strip], strip.cell_length
    )


def live(strip: Strip, palette: Palette) -> Strip:
    """Return a row with the mark of an answer that is still streaming."""
    return Strip.join([Strip([Segment(LIVE_MARK, palette.style(palette.accent))]), strip.crop(2)])


def selected(strip: Strip, line: Line, span: tuple[int, int], style: Style) -> Strip:
    """Return a row with a span of characters highlighted as selected; an end of -1 is the row's end."""
    start, end = max(span[0], line.gutter), span[1]
    stop = len(line.drawn) - line.margin
    first, last = cell_of(strip, start), cell_of(strip, stop if end == -1 else min(end, stop))
    if first >= last:
        return strip
    return Strip.join([strip.crop(0, first), recolored(strip.crop(first, last), style), strip.crop(last)])


def on_ground(strip: Strip, width: int, ground: Style) -> Strip:
    """Return a row filled to `width` cells on a background of its own."""
    return recolored(strip.adjust_cell_length(width, ground), ground)


def with_cursor(strip: Strip, column: int, width: int) -> Strip:
    """Return a row of `width` cells with the reader's cursor: the character under it reversed."""
    first = min(cell_of(strip, column), width - 1)
    last = max(cell_of(strip, column + 1), first + 1)
    under = strip.crop(first, last)
    is_reversed = any(style is not None and style.reverse for _, style, _ in under)
    at_cursor = recolored(under, Style(reverse=not is_reversed))
    return Strip.join([strip.crop(0, first), at_cursor, strip.crop(last)])


def with_news(strip: Strip, width: int, palette: Palette) -> Strip:
    """Return a row whose end has the label for new text below."""
    label = Strip([Segment(_NEWS, Style(color=palette.accent, bgcolor=palette.raised, bold=True))])
    room = width - label.cell_length
    if room < 0:
        return strip
    ground = palette.style(palette.text)
    return Strip.join([strip.adjust_cell_length(room, ground), label])


def marked(strip: Strip, marks: Sequence[Marked]) -> Strip:
    """Return a row with its search hits marked: the current one reversed, the others underlined."""
    parts, at = [], 0
    for mark in marks:
        start, end = cell_of(strip, mark.start), cell_of(strip, mark.end)
        if start < at or start >= end:
            continue
        style = _CURRENT if mark.is_current else _HIT
        parts += [strip.crop(at, start), strip.crop(start, end).apply_style(style)]
        at = end
    return Strip.join([*parts, strip.crop(at)]) if parts else strip


class Shown(NamedTuple):
    """Everything besides its line that a row's look depends on.

    `selected` is the index of the first character and of the one after the last (-1 for the end); `cursor`
    is the index of the character under the reader's cursor.
    """

    is_live: bool = False
    is_dimmed: bool = False
    has_news: bool = False
    marks: tuple[Marked, ...] = ()
    selected: tuple[int, int] | None = None
    cursor: int | None = None


_PLAIN, _LIVE = Shown(), Shown(is_live=True)


class RowDrawer:
    """Draws rows for one look and caches them; `begin` changes the look."""

    def __init__(self) -> None:
        self._filters: Sequence[LineFilter] = ()
        self._rows: OrderedDict[int, tuple[Line, Shown, Strip]] = OrderedDict()
        self.begin(Look(0, Palette()))

    def begin(
        self,
        look: Look,
        *,
        selection: Style | None = None,
        filters: Sequence[LineFilter] = (),
        has_colors: bool = True,
    ) -> None:
        """Draw for `look` from now on; without colors, reverse and underline replace backgrounds."""
        palette = look.palette
        self._width, self._palette, self._filters = look.width, palette, filters
        self._base = palette.style(palette.text)
        self._ground = Color.parse(palette.background)
        selected = selection.bgcolor if selection is not None else None
        # in the plain text color: no other is readable on the selection's background
        self._selected = Style(color=palette.text, bgcolor=selected) if has_colors else Style(reverse=True)
        self._cursor_row = Style(bgcolor=palette.raised, underline=None if has_colors else True)
        self._rows.clear()

    def line(self, line: Line) -> Strip:
        """Return a line in its colors, without marks, selection or cursor."""
        return Strip(line.segments).apply_style(self._base)

    def content(self, line: Line, shown: Shown, position: Position) -> Strip:
        """Return a row without the widget's padding, with a position per character for mouse events."""
        return self._content(line, shown).apply_offsets(0, key_of(position))

    def whole(self, line: Line, shown: Shown, left: int, width: int) -> Strip:
        """Return a row as drawn on the terminal, `left` cells from the widget's edge."""
        kept = self._rows.get(id(line))
        if kept is not None and kept[0] is line and kept[1] == shown and kept[2].cell_length == width:
            self._rows.move_to_end(id(line))
            return kept[2]
        if shown in (_PLAIN, _LIVE):
            drawn = self._plain(line, is_live=shown.is_live)
        else:
            drawn = list(self._content(line, shown))
        strip = self._finished(drawn, left, width)
        self._rows[id(line)] = (line, shown, strip)
        if len(self._rows) > _KEPT_ROWS:
            self._rows.popitem(last=False)
        return strip

    def blank(self, width: int) -> Strip:
        """Return an empty row."""
        return self._finished([], 0, width)

    def _plain(self, line: Line, *, is_live: bool) -> list[Segment]:
        """Return a row without marks, selection or cursor, as most rows are.

        In one pass: each intermediate strip would cost more than the row's text.
        """
        base = self._base
        segments = [Segment(text, base + style if style else base) for text, style, _ in line.segments]
        if not is_live:
            return segments
        if segments and len(segments[0].text) >= 2 and segments[0].text.isascii():
            first = Segment(segments[0].text[2:], segments[0].style)
            mark = Segment(LIVE_MARK, self._palette.style(self._palette.accent))
            return [mark, first, *segments[1:]] if first.text else [mark, *segments[1:]]
        return list(live(Strip(segments), self._palette))

    def _content(self, line: Line, shown: Shown) -> Strip:
        return self._over(self.line(line), line, shown).adjust_cell_length(self._width, self._base)

    def _over(self, strip: Strip, line: Line, shown: Shown) -> Strip:
        palette = self._palette
        if shown.is_live:
            strip = live(strip, palette)
        if shown.is_dimmed:
            strip = recolored(strip, Style(color=palette.muted))
        strip = marked(strip, shown.marks)
        if shown.cursor is not None:
            strip = on_ground(strip, self._width, self._cursor_row)
        if shown.selected is not None:
            strip = selected(strip, line, shown.selected, self._selected)
        if shown.cursor is not None:
            strip = with_cursor(strip, shown.cursor, self._width)
        return with_news(strip, self._width, palette) if shown.has_news else strip

    def _finished(self, content: Sequence[Segment], left: int, width: int) -> Strip:
        room = width - left - sum(cell_len(segment.text) for segment in content)
        segments = [*content, Segment(" " * room, self._base)] if room > 0 else list(content)
        if left:
            segments.insert(0, Segment(" " * left, self._base))
        for line_filter in self._filters:
            segments = line_filter.apply(segments, self._ground)
        return Strip(segments, width) if room >= 0 else Strip(segments).crop(0, width)
