"""Base classes for scrolled rows whose text can be selected; subclasses keep the position."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from textual import work
from textual.geometry import Offset, Region, Size
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.selection import Selection
from textual.widget import Widget

from rolling_chat.tui.transcript.document import SLICE, Document
from rolling_chat.tui.transcript.layout import Row
from rolling_chat.tui.transcript.selection import (
    Point,
    SelectionCollector,
    key_of,
    line_at,
    position_of_key,
    selected_text,
    word_at,
)

if TYPE_CHECKING:
    from textual import events
    from textual.scrollbar import ScrollDown, ScrollTo, ScrollUp


_WHEEL_LINES = 3
_BREATH = 0.002  # seconds between two slices of work


class RowScroller(ScrollView):
    """A base class that turns wheel, scroll bar and Textual's own scrolling into moves by lines or rows."""

    _is_settling = False
    _thumb: _Thumb | None = None

    def move_lines(self, lines: int) -> None:
        """Scroll by a number of lines."""
        raise NotImplementedError

    def move_to_row(self, row: int) -> None:
        """Scroll so that a row, counted from the top of the whole content, is the first in view."""
        raise NotImplementedError

    def scroll_pages(self, pages: int) -> None:
        """Scroll by a number of pages."""
        raise NotImplementedError

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Convert Textual's own scrolling, such as a selection dragged past the edge, to a move by lines."""
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = new_value
        is_cut = old_value > new_value >= self.max_scroll_y  # by a resize, not by the user
        if not self._is_settling and not is_cut and round(old_value) != round(new_value):
            self.move_lines(round(new_value) - round(old_value))

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, -_WHEEL_LINES)

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, _WHEEL_LINES)

    def _wheel(self, event: events.MouseEvent, lines: int) -> None:
        event.stop()
        event.prevent_default()
        self.move_lines(lines)

    def _on_scroll_to(self, message: ScrollTo) -> None:
        message.stop()
        message.prevent_default()
        if message.y is not None:
            self.move_to_row(round(message.y))

    def _on_scroll_up(self, message: ScrollUp) -> None:
        message.stop()
        message.prevent_default()
        self.scroll_pages(-1)

    def _on_scroll_down(self, message: ScrollDown) -> None:
        message.stop()
        message.prevent_default()
        self.scroll_pages(1)

    def update_scroll_bar(self, width: int, height: int, top: int, total: int) -> None:
        """Make the scroll bar show that `height` rows of `total` are in sight, from `top` on."""
        self._is_settling = True
        try:
            # set without Textual's watchers: the amount of content affects no layout
            self.set_reactive(Widget.virtual_size, Size(width, max(total, height)))
            self.set_reactive(Widget.scroll_y, float(top))
            self.set_reactive(Widget.scroll_target_y, float(top))
            if self.show_vertical_scrollbar:
                self._move_thumb(height, top, total)
        finally:
            self._is_settling = False

    def _move_thumb(self, height: int, top: int, total: int) -> None:
        """Redraw the scroll bar only where its thumb changed, in eighths of a row."""
        bar, scale = self.vertical_scrollbar, 8 * height / max(1, total)
        thumb = _Thumb(height, total > height, round(top * scale), round((top + height) * scale))
        before, self._thumb = self._thumb, thumb
        if before is None or before[:2] != thumb[:2]:
            bar.window_virtual_size, bar.window_size, bar.position = total, height, top
            return
        for name, value in (("window_virtual_size", total), ("window_size", height), ("position", top)):
            bar.set_reactive(getattr(ScrollBar, name), value)
        if thumb != before:
            bar.refresh(*(Region(0, row, bar.size.width, 1) for row in _changed_rows(before, thumb)))


class _Thumb(NamedTuple):
    """The look of a scroll bar: its height, whether it has a thumb, and its ends in eighths of a row."""

    height: int
    is_shown: bool
    start: int
    end: int


def _changed_rows(before: _Thumb, after: _Thumb) -> set[int]:
    """Return the rows around both ends of a moved thumb, which Textual draws at least one row high."""
    rows: set[int] = set()
    for one, other in ((before.start, after.start), (before.end, after.end)):
        rows |= set(range(min(one, other) // 8 - 1, max(one, other) // 8 + 3))
    return rows & set(range(after.height))


class SelectableRows(RowScroller):
    """An abstract widget of rows whose text can be selected, even far out of sight."""

    ALLOW_SELECT = True

    @property
    def document(self) -> Document:
        """The document whose rows are shown."""
        raise NotImplementedError

    def focus_on_click(self) -> bool:
        """Return False: a click does not move the keyboard focus."""
        return False

    @property
    def allow_select(self) -> bool:
        """Whether text may be selected with the mouse: always."""
        return True

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the text of a selection."""
        return selected_text(self.document, _point(selection.start), _point(selection.end)), "\n"

    def takes_long(self, then: Callable[[str | None], None]) -> bool:
        """Return whether collecting the selected text takes long; if so, pass the text to `then` later.

        `then` gets None if the items were replaced meanwhile.
        """
        selection = self.text_selection
        if selection is None:
            return False
        collector = SelectionCollector(self.document, _point(selection.start), _point(selection.end))
        if collector.collect(SLICE):
            self._take_more(collector, then)
            return True
        return False

    @work
    async def _take_more(self, collector: SelectionCollector, then: Callable[[str | None], None]) -> None:
        while True:
            await asyncio.sleep(_BREATH)
            if collector.is_lost(self.document):
                then(None)
                return
            if not collector.collect(SLICE):
                then(collector.text.rstrip("\n"))
                return

    def selection_updated(self, _selection: Selection | None) -> None:
        """Redraw after the selection changed."""
        self.refresh()

    def select(self, first: Point, last: Point) -> None:
        """Select the text between two points."""
        begin, end = (Offset(point.column, key_of(point.position)) for point in (first, last))
        self.screen.selections = {self: Selection.from_offsets(begin, end)}

    def select_around(self, row: Row, column: int, *, whole_line: bool) -> None:
        """Select the word at a character of a row, or the whole line of text it belongs to."""
        if whole_line:
            self.select(*line_at(self.document, row))
            return
        first, last = word_at(row, column)
        if first < last:
            self.select(Point(row.position, first), Point(row.position, last))


def _point(offset: Offset | None) -> Point | None:
    return Point(position_of_key(offset.y), offset.x) if offset is not None else None
