"""The transcript's view: one scrolled widget that draws lines, never a widget a message."""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rolling_chat.tui.theming import palette_of
from rolling_chat.tui.transcript.items import Item, Kind
from rolling_chat.tui.transcript.marks import marked, words_pattern
from rolling_chat.tui.transcript.palette import Palette
from rolling_chat.tui.transcript.render import Look, gap_before, render_item

if TYPE_CHECKING:
    from textual import events
    from textual.binding import BindingType
    from textual.selection import Selection
    from textual.timer import Timer

_SLICE = 0.008  # seconds of laying out at a time, so that keys are answered in between
_SLICE_EVERY = 0.02
_KEPT_ITEMS = 300
_PAGES_AT_ONCE = 2
_ITEMS_AT_ONCE = 40


class Transcript(ScrollView, can_focus=False):
    """Shows a list of items; follows the end until the person scrolls up.

    Items are values: an item that is the same object as before is not drawn again. Laid out are
    the items from `_low` to `_high`: first those that are looked at, the rest in slices while
    nothing else is to do, the rows that are looked at standing still meanwhile.
    """

    ALLOW_SELECT = True
    BINDINGS: ClassVar[list[BindingType]] = []
    DEFAULT_CSS = """
    Transcript {
        width: 100%;
        height: 1fr;
        overflow-x: hidden;
        overflow-y: scroll;
        padding: 0 0 0 1;
        background: $background;
        color: $foreground;
        scrollbar-size-vertical: 1;
    }
    """

    class Opened(Message):
        """A tool's work is to be shown whole."""

        def __init__(self, item_id: str) -> None:
            super().__init__()
            self.item_id = item_id

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.follow = True
        self.details = False
        self.paint_cost = 0.0
        self._items: list[Item] = []
        self._low = 0
        self._heights: list[int] = []
        self._starts: list[int] = [0]
        self._strips: LRUCache[str, tuple[Item, list[Strip]]] = LRUCache(_KEPT_ITEMS)
        self._look = Look(0, Palette())
        self._backlog: Timer | None = None
        self._found: tuple[str, re.Pattern[str] | None] = ("", None)

    @property
    def allow_select(self) -> bool:
        """Text may be selected with the mouse."""
        return True

    def on_mount(self) -> None:
        """Prepare the timer that lays out what is not looked at."""
        self._backlog = self.set_interval(_SLICE_EVERY, self._lay_out_rest, pause=True)

    def on_resize(self) -> None:
        """Lay out again for another width; only the place at the top row is kept."""
        if self._new_look():
            self._lay_out_again()
        elif self.follow:
            self._to_end()

    def notify_style_update(self) -> None:
        """Draw again in the colours of another theme."""
        super().notify_style_update()
        if self.is_mounted and self._new_look():
            self._lay_out_again()

    def show_items(self, items: Sequence[Item]) -> None:
        """Show `items`; only those that are new or not the same as before are laid out."""
        began = time.perf_counter()
        before, self._items = self._items, list(items)
        if self._look.width <= 0:
            return
        same = _common_start(before, self._items)
        if same < self._low or not self._heights or (self.follow and self._far_from_end(same)):
            self._lay_out_again()
        else:
            self._cut(same)
            for _ in range(min(_ITEMS_AT_ONCE, len(self._items) - self._high)):
                self._lay_out_next()
            self._settle()
        self.paint_cost = time.perf_counter() - began

    def set_details(self, shown: bool) -> None:
        """Open or fold reasoning and tool results."""
        self.details = shown
        if self._new_look():
            self._lay_out_again()

    def scroll_pages(self, pages: int) -> None:
        """Scroll by pages; at the end it follows again."""
        step = max(1, self.size.height - 2)
        self.scroll_to(y=self.scroll_offset.y + pages * step, animate=False)

    def scroll_lines(self, lines: int) -> None:
        """Scroll by lines; at the end it follows again."""
        self.scroll_to(y=self.scroll_offset.y + lines, animate=False)

    def scroll_to_start(self) -> None:
        """Show the first item."""
        self.follow = False
        self._lay_out_from(0, 0)

    def scroll_to_newest(self) -> None:
        """Show the end, and follow it."""
        self.follow = True
        if self._high < len(self._items):
            self._lay_out_again()
        else:
            self._to_end()

    def show_found(self, item_id: str, words: str) -> None:
        """Scroll to an item, with the words that were looked for marked in it."""
        index = next((at for at, item in enumerate(self._items) if item.id == item_id), -1)
        if index < 0 or self._look.width <= 0:
            return
        pattern = words_pattern(words)
        self._found = (item_id, pattern)
        self.follow = False
        self._lay_out_from(index, self._gap(index) + self._line_found(index, pattern))
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Whoever scrolls up is left alone; whoever comes back to the end is taken along."""
        super().watch_scroll_y(old_value, new_value)
        self.follow = round(new_value) >= self.max_scroll_y and self._high == len(self._items)

    def render_line(self, y: int) -> Strip:
        """One row of the screen."""
        row = self.scroll_offset.y + y
        width = self._look.width
        base = self.rich_style
        strip = self._strip_at(row)
        if strip is None:
            return Strip.blank(width, base)
        return self._selected(strip, row).adjust_cell_length(width, base).apply_offsets(0, row)

    def lines(self) -> list[str]:
        """Every line that is laid out, as plain text."""
        strips = (self._strip_at(row) for row in range(self.virtual_size.height))
        return [strip.text.rstrip() if strip else "" for strip in strips]

    def on_click(self, event: events.Click) -> None:
        """A click on a tool's work opens it whole; what ends a selection or goes on to a word does not."""
        offset = event.get_content_offset(self)
        item = self._item_at(int(self.scroll_y) + offset.y) if offset is not None else None
        if item is not None and item.kind is Kind.TOOL and event.chain == 1 and not self.text_selection:
            self.post_message(self.Opened(item.id))

    def _item_at(self, row: int) -> Item | None:
        if not self._heights or not 0 <= row < self._starts[-1]:
            return None
        return self._items[self._low + bisect_right(self._starts, row) - 1]

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text under a selection made with the mouse."""
        last = self.virtual_size.height - 1
        first = min(selection.start.y, last) if selection.start is not None else 0
        if selection.end is not None:
            last = min(selection.end.y, last)
        strips = [self._strip_at(row) for row in range(first, last + 1)]
        text = "\n" * first + "\n".join(strip.text.rstrip() if strip else "" for strip in strips)
        return selection.extract(text), "\n"

    def selection_updated(self, _selection: Selection | None) -> None:
        """Draw the selection."""
        self.refresh()

    def _selected(self, strip: Strip, row: int) -> Strip:
        selection = self.text_selection
        span = selection.get_span(row) if selection is not None else None
        if span is None:
            return strip
        start, end = span
        style = self.screen.get_component_rich_style("screen--selection")
        # offsets count characters; strips are cut by cells
        first = strip.index_to_cell_position(start)
        last = strip.cell_length if end == -1 else strip.index_to_cell_position(end)
        last = min(last, strip.cell_length)
        if first >= last:
            return strip
        return Strip.join(
            [strip.crop(0, first), strip.crop(first, last).apply_style(style), strip.crop(last)]
        )

    def _strip_at(self, row: int) -> Strip | None:
        if not self._heights or not 0 <= row < self._starts[-1]:
            return None
        at = bisect_right(self._starts, row) - 1
        item = self._items[self._low + at]
        line = row - self._starts[at] - self._gap(self._low + at)
        strips = self._strips_of(item)
        if not 0 <= line < len(strips):
            return None
        found, pattern = self._found
        return marked(strips[line], pattern) if item.id == found and pattern else strips[line]

    def _strips_of(self, item: Item) -> list[Strip]:
        kept = self._strips.get(item.id)
        if kept is not None and kept[0] is item:
            return kept[1]
        palette = self._look.palette
        ground = palette.style(palette.text)
        strips = [Strip(line).apply_style(ground) for line in render_item(item, self._look)]
        self._strips.discard(item.id)  # setting a key that is there would keep what it had
        self._strips[item.id] = (item, strips)
        return strips

    def _line_found(self, index: int, pattern: re.Pattern[str] | None) -> int:
        """The line of an item to be at the top: its first where what was found is in sight from there."""
        strips = self._strips_of(self._items[index]) if pattern is not None else []
        lines = (at for at, strip in enumerate(strips) if pattern is not None and pattern.search(strip.text))
        line, page = next(lines, 0), max(1, self.size.height)
        return 0 if line < page - 1 else line - page // 3

    def _gap(self, index: int) -> int:
        return gap_before(self._items[index], self._items[index - 1] if index else None)

    def _height(self, index: int) -> int:
        return self._gap(index) + len(self._strips_of(self._items[index]))

    def _new_look(self) -> bool:
        """Take the width and the colours as they are now; True where they are not as before."""
        look = Look(self.scrollable_content_region.width, palette_of(self.app), self.details)
        if look == self._look:
            return False
        self._look = look
        self._strips.clear()
        return True

    @property
    def _high(self) -> int:
        return self._low + len(self._heights)

    def _far_from_end(self, index: int) -> bool:
        return len(self._items) - min(index, self._high) > _ITEMS_AT_ONCE

    def _lay_out_again(self) -> None:
        """Lay out anew what is looked at: the end, or what stands at the top row."""
        if self._look.width <= 0:
            return
        anchor, line = self._anchor()
        if self.follow or anchor >= len(self._items):
            self.follow = True
            self._lay_out_from(len(self._items), 0)
        else:
            self._lay_out_from(anchor, line)

    def _lay_out_from(self, index: int, line: int) -> None:
        """Lay out a few pages around item `index`, whose `line` is to stand at the top row."""
        self._low, self._heights, self._starts = index, [], [0]
        enough = _PAGES_AT_ONCE * max(1, self.size.height)
        while self._high < len(self._items) and self._starts[-1] < enough + line:
            self._lay_out_next()
        above: list[int] = []
        while self._low and sum(above) < enough:
            self._low -= 1
            above.append(self._height(self._low))
        self._prepend(above)
        self._settle(top=sum(above) + line)

    def _lay_out_rest(self) -> None:
        """Lay out a slice of the rest, and leave the rows that are looked at where they are."""
        began = time.perf_counter()
        above: list[int] = []
        while time.perf_counter() - began < _SLICE:
            if self._high + len(above) < len(self._items):
                self._lay_out_next()
            elif self._low:
                self._low -= 1
                above.append(self._height(self._low))
            else:
                break
        self._prepend(above)
        self._settle(top=self.scroll_offset.y + sum(above))

    def _lay_out_next(self) -> None:
        height = self._height(self._high)
        self._heights.append(height)
        self._starts.append(self._starts[-1] + height)

    def _prepend(self, above: list[int]) -> None:
        """`above` holds heights from the lowest item upwards."""
        if not above:
            return
        self._heights = [*reversed(above), *self._heights]
        starts = [0]
        for height in self._heights:
            starts.append(starts[-1] + height)
        self._starts = starts

    def _cut(self, index: int) -> None:
        """Forget the layout of every item from `index` on."""
        keep = index - self._low
        del self._heights[keep:]
        del self._starts[keep + 1 :]

    def _settle(self, top: int | None = None) -> None:
        """Make the scroll bar and the offset fit the layout; `top` is the row to be at the top."""
        self.virtual_size = Size(self._look.width, self._starts[-1])
        if self.follow:
            self._to_end()
        elif top is not None:
            self.scroll_to(y=top, animate=False)
        if self._backlog is not None:
            whole = not self._low and self._high == len(self._items)
            (self._backlog.pause if whole else self._backlog.resume)()
        self.refresh()

    def _to_end(self) -> None:
        self.scroll_to(y=self.max_scroll_y, animate=False)
        self.follow = True

    def _anchor(self) -> tuple[int, int]:
        """The item at the top row, and which of its lines that is."""
        if not self._heights:
            return len(self._items), 0
        row = min(self.scroll_offset.y, max(0, self._starts[-1] - 1))
        at = min(bisect_right(self._starts, row) - 1, len(self._heights) - 1)
        return self._low + at, row - self._starts[at]


def _common_start(before: Sequence[Item], after: Sequence[Item]) -> int:
    """How many items at the start are the very same objects."""
    shared = min(len(before), len(after))
    for index in range(shared):
        if before[index] is not after[index]:
            return index
    return shared
