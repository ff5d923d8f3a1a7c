"""Rows as strips of cells, with all that is laid over them; what stays as it was is kept ready."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.color import Color
from textual.filter import LineFilter
from textual.strip import Strip

from rolling_chat.tui.transcript import overlays
from rolling_chat.tui.transcript.document import Place
from rolling_chat.tui.transcript.lines import Line
from rolling_chat.tui.transcript.marks import Marked, marked
from rolling_chat.tui.transcript.palette import Palette
from rolling_chat.tui.transcript.render import Look
from rolling_chat.tui.transcript.selection import key_of

_KEPT_LINES = 1_000
_KEPT_ROWS = 200


@dataclass(frozen=True, slots=True)
class Shown:
    """What a row's look depends on besides its line.

    `selected` are the first character and the one after the last, -1 the end; `cursor` is the character
    under the reader's cursor.
    """

    place: Place
    is_live: bool = False
    is_dimmed: bool = False
    has_news: bool = False
    marks: tuple[Marked, ...] = ()
    selected: tuple[int, int] | None = None
    cursor: int | None = None


class RowDrawer:
    """Draws the rows of one look; `begin` takes another."""

    def __init__(self) -> None:
        self._filters: Sequence[LineFilter] = ()
        self._lines: LRUCache[int, tuple[Line, Strip]] = LRUCache(_KEPT_LINES)
        self._rows: LRUCache[int, tuple[Line, Shown, Strip, Strip]] = LRUCache(_KEPT_ROWS)
        self.begin(Look(0, Palette()))

    def begin(
        self,
        look: Look,
        *,
        selection: Style | None = None,
        filters: Sequence[LineFilter] = (),
        has_colors: bool = True,
    ) -> None:
        """Draw for `look` from now on; without colours a ground of its own cannot be seen."""
        palette = look.palette
        self._width, self._palette, self._filters = look.width, palette, filters
        self._base = palette.style(palette.text)
        self._ground = Color.parse(palette.background)
        selected = selection.bgcolor if selection is not None else None
        # in the plain text's colour: no other can be read on the ground of what is selected
        self._selected = Style(color=palette.text, bgcolor=selected) if has_colors else Style(reverse=True)
        self._cursor_row = Style(bgcolor=palette.raised, underline=None if has_colors else True)
        self._lines.clear()
        self._rows.clear()

    def line(self, line: Line) -> Strip:
        """A line in its colours, with nothing over it."""
        kept = self._lines.get(id(line))
        if kept is not None and kept[0] is line:
            return kept[1]
        strip = Strip(line.segments).apply_style(self._base)
        self._lines.discard(id(line))  # setting a key that is there would keep what it had
        self._lines[id(line)] = (line, strip)
        return strip

    def content(self, line: Line, shown: Shown) -> Strip:
        """A row without what the widget has around it."""
        return self._row(line, shown)[0]

    def whole(self, line: Line, shown: Shown, left: int, width: int) -> Strip:
        """A row of the widget, `left` cells from its edge, as it goes to the terminal."""
        content, whole = self._row(line, shown)
        if whole.cell_length != width:
            whole = self._finished(content, left, width)
            self._keep(line, shown, content, whole)
        return whole

    def blank(self, width: int) -> Strip:
        """A row with nothing on it."""
        return self._filtered(Strip.blank(width, self._base))

    def _row(self, line: Line, shown: Shown) -> tuple[Strip, Strip]:
        kept = self._rows.get(id(line))
        if kept is not None and kept[0] is line and kept[1] == shown:
            return kept[2], kept[3]
        content = self._over(self.line(line), line, shown).adjust_cell_length(self._width, self._base)
        content = content.apply_offsets(0, key_of(shown.place))
        self._keep(line, shown, content, Strip([]))
        return content, Strip([])

    def _keep(self, line: Line, shown: Shown, content: Strip, whole: Strip) -> None:
        self._rows.discard(id(line))
        self._rows[id(line)] = (line, shown, content, whole)

    def _over(self, strip: Strip, line: Line, shown: Shown) -> Strip:
        palette = self._palette
        if shown.is_live:
            strip = overlays.live(strip, palette)
        if shown.is_dimmed:
            strip = overlays.recolored(strip, Style(color=palette.muted))
        strip = marked(strip, shown.marks)
        if shown.cursor is not None:
            strip = overlays.on_ground(strip, self._width, self._cursor_row)
        if shown.selected is not None:
            strip = overlays.selected(strip, line, shown.selected, self._selected)
        if shown.cursor is not None:
            strip = overlays.with_cursor(strip, shown.cursor, self._width)
        return overlays.with_news(strip, self._width, palette) if shown.has_news else strip

    def _finished(self, content: Strip, left: int, width: int) -> Strip:
        around = Segment(" " * left, self._base)
        return self._filtered(Strip([around, *content]).adjust_cell_length(width, self._base))

    def _filtered(self, strip: Strip) -> Strip:
        for line_filter in self._filters:
            strip = strip.apply_filter(line_filter, self._ground)
        return strip
