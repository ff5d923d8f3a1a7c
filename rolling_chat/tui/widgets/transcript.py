"""The transcript's view: one widget that draws the rows of a viewport, not one widget per message."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from textual.geometry import Region
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip

from rolling_chat.commands.marks import Mark
from rolling_chat.tui.state.fates import Fates
from rolling_chat.tui.state.item_list import ItemList
from rolling_chat.tui.state.items import FOLDED_KINDS, Item, Kind, Status
from rolling_chat.tui.theming import palette_of
from rolling_chat.tui.transcript.colors import Look, Palette
from rolling_chat.tui.transcript.cursor import Cursor
from rolling_chat.tui.transcript.document import SLICE, Document
from rolling_chat.tui.transcript.finding import Found, Marked, marks_in, words_pattern
from rolling_chat.tui.transcript.layout import Position, Row
from rolling_chat.tui.transcript.selection import key_of
from rolling_chat.tui.transcript.viewport import MESSAGES, Viewport
from rolling_chat.tui.widgets.row_drawer import RowDrawer, Shown
from rolling_chat.tui.widgets.scrolling import SelectableRows

if TYPE_CHECKING:
    from textual import events
    from textual.timer import Timer

_SLICE_EVERY = 0.02  # seconds


_NEAR_TOP = 40  # items left above the view when older ones are requested


class Transcript(SelectableRows, can_focus=True):
    """A scrolling view of a list of items that follows the end until the user scrolls up.

    `viewport` is the only scroll state; the scroll bar just displays it, except while it is dragged.
    """

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

    class LinkClicked(Message):
        """Posted when the user clicks a link; nothing has been opened yet."""

        def __init__(self, address: str) -> None:
            super().__init__()
            self.address = address

    class Moved(Message):
        """Posted when following the end starts or stops, or when "new below" appears or disappears."""

    class OlderWanted(Message):
        """Posted to request the items above the first one: the next few, or all if `whole`."""

        def __init__(self, *, whole: bool) -> None:
            super().__init__()
            self.whole = whole

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._wants_start = False
        self.paint_cost = 0.0
        self._document = Document(ItemList(), Look(0, Palette()))
        self.viewport = Viewport(self._document)
        self._drawer = RowDrawer()
        self._drawn: list[tuple[Row, Item]] = []
        self._backlog: Timer | None = None
        self._found = Found()
        self._marks: list[tuple[Marked, ...]] = []
        self._had_news, self._followed = False, True
        self.cursor: Cursor | None = None
        self.takes_key: Callable[[events.Key], bool] | None = None

    # -- what is shown

    @property
    def document(self) -> Document:
        """The items laid out as rows."""
        return self._document

    @property
    def details(self) -> bool:
        """Whether reasoning and tool results are unfolded by default."""
        return self._document.all_open

    @property
    def follow(self) -> bool:
        """Whether the view follows the end."""
        return self.viewport.follow

    def show(self, items: ItemList) -> None:
        """Show `items`, or the changes in them since the last call."""
        began = time.perf_counter()
        if items is not self._document.items:
            self._document = Document(items, self._document.look)
            self.viewport = Viewport(self._document, self.viewport.height)
            items.mark_all_new()
        self._update()
        self.paint_cost = time.perf_counter() - began

    def show_fates(self, fates: Fates) -> None:
        """Show each item's fate in the next request; redraws only heads and the lines above."""
        self._document.set_fates(fates)
        self._update(all_rows=True)

    def set_details(self, shown: bool) -> None:
        """Unfold or fold all reasoning and tool results."""
        self._document.open_all(is_open=shown)
        self._update()

    def mark_found(self, found: Found) -> None:
        """Mark the search hits of `found`."""
        self._found = found
        self._update()

    def turn(self, ordinal: int) -> None:
        """Fold or unfold an item."""
        if ordinal not in self._document.ordinals:
            return
        self._document.turn(ordinal)
        if self.cursor is not None and self.cursor.point.position.ordinal == ordinal:
            self.cursor.to(self._document.beginning(ordinal))
        self._update()

    # -- moving

    def scroll_pages(self, pages: int) -> None:
        """Scroll by pages; reaching the end resumes following it."""
        self.move_lines(pages * max(1, self.viewport.height - 2))

    def move_lines(self, lines: int) -> None:
        """Scroll by lines; reaching the end resumes following it."""
        self.viewport.move(lines)
        self._moved()

    def move_to_row(self, row: int) -> None:
        """Scroll so that a row, counted from the top of the whole transcript, is the first in view."""
        self.viewport.to_row(row)
        self._moved()

    def scroll_to_start(self) -> None:
        """Scroll to the first item."""
        self.viewport.to_start()
        self._moved()
        self._wants_start = True
        self.post_message(self.OlderWanted(whole=True))

    def return_to_start(self) -> None:
        """Scroll to the first item again, if the reader was there before older ones were added."""
        if self._wants_start:
            self.viewport.to_start()
            self._settle()

    def scroll_to_newest(self) -> None:
        """Scroll to the end and follow it."""
        self.viewport.to_end()
        self._moved()

    def scroll_items(self, step: int, kinds: Collection[Kind] = MESSAGES) -> None:
        """Scroll to the next or previous item of some kinds, by default messages."""
        self.viewport.by_items(step, kinds)
        self._moved()

    def show_position(self, position: Position) -> None:
        """Scroll a line into sight, a third of the way down, unless it is in sight already."""
        if all(row.position != position for row in self.viewport.rows):
            self.viewport.to_position(position, above=self.viewport.height // 3)
        self._moved()

    def hold(self) -> None:
        """Stop following the end."""
        self.viewport.hold()
        self._settle()

    def release(self) -> None:
        """Allow following the end again, unless the reader's cursor is shown."""
        if self.cursor is None:
            self.viewport.release()
            self._settle()

    def read_from(self, position: Position | None) -> None:
        """Put the reader's cursor on a row, or remove it for None."""
        if position is None:
            self.cursor = None
            self.release()
            return
        self.cursor = Cursor(self._document, position)
        self.hold()

    def cursor_moved(self) -> None:
        """Scroll the reader's cursor into sight and redraw it."""
        if self.cursor is not None:
            self._update()
            self.refresh()

    def _have_in_sight(self, position: Position) -> None:
        """Scroll no further than needed to see a line."""
        rows, height = self.viewport.rows, self.viewport.height
        if not rows or rows[0].position <= position <= rows[-1].position:
            return
        self.viewport.to_position(position, above=height - 1 if position > rows[-1].position else 0)

    def _moved(self) -> None:
        """Move the reader's cursor into sight after the user scrolled, and redraw."""
        rows = self.viewport.rows
        self._wants_start = False
        if rows and rows[0].position.ordinal - self._document.ordinals.start < _NEAR_TOP:
            self.post_message(self.OlderWanted(whole=False))
        if self.cursor is not None and rows:
            position = self.cursor.point.position
            if not rows[0].position <= position <= rows[-1].position:
                self.cursor.to(rows[0].position if position < rows[0].position else rows[-1].position)
            self.refresh()
        self._settle()

    def show_found(self, item_id: str, words: str) -> None:
        """Scroll to an item and mark the words that were searched for in it."""
        ordinal = self._document.items.by_id.get(item_id)
        if ordinal is None or self._document.look.width <= 0:
            return
        pattern = words_pattern(words)
        self._found = Found(pattern, item_id)
        position = Position(ordinal)
        if pattern is not None:
            rows = self._document.forward(position, 5_000).rows
            own = [row for row in rows if row.position.ordinal == ordinal]
            hit = next((at for at, row in enumerate(own) if pattern.search(row.line.drawn)), 0)
            if hit >= self.viewport.height - 1:
                position = own[hit - self.viewport.height // 3].position
        self.viewport.to_position(position)
        self._settle(all_rows=True)

    # -- what Textual asks

    def allow_focus(self) -> bool:
        """Return whether the reader's cursor is shown, which is all that keys control here."""
        return self.cursor is not None

    def on_mount(self) -> None:
        """Prepare the timer that lays out long texts in slices."""
        self._backlog = self.set_interval(_SLICE_EVERY, self._lay_out_more, pause=True)

    def on_resize(self) -> None:
        """Lay out the text for the new size and keep the top row's text in place."""
        self._adopt_look()

    def notify_style_update(self) -> None:
        """Redraw in the colors of another theme."""
        super().notify_style_update()
        if self.is_mounted:
            self._adopt_look()

    def render_line(self, y: int) -> Strip:
        """Draw one row without the widget's padding, for Textual's mouse handling."""
        if not 0 <= y < len(self._drawn):
            return self._drawer.blank(self._document.look.width)
        row, item = self._drawn[y]
        return self._drawer.content(row.line, self._shown(y, row, item, self.text_selection), row.position)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw rows for the terminal.

        Textual's default, by way of `render_line`, creates ten strips for a finished row, to handle borders
        and opacity, which this widget does not have.
        """
        width, left = self.size.width + self.scrollbar_size_vertical, self.styles.padding.left
        selection, drawer, rows = self.text_selection, self._drawer, self._drawn[crop.y : crop.bottom]
        strips = [
            drawer.whole(row.line, self._shown(y, row, item, selection), left, width)
            for y, (row, item) in enumerate(rows, crop.y)
        ]
        strips += [drawer.blank(width)] * (crop.height - len(strips))
        if crop.column_span == (0, width):
            return strips
        return [strip.crop(crop.x, crop.right) for strip in strips]

    def _shown(self, y: int, row: Row, item: Item, selection: Selection | None) -> Shown:
        fate, cursor = self._document.fates.items.get(item.id), self.cursor
        return Shown(
            is_live=item.kind is Kind.ASSISTANT and item.status is Status.LIVE and row.line.gutter > 0,
            is_dimmed=item.mark is Mark.EXCLUDED or (fate is not None and fate.dimmed),
            has_news=self.viewport.is_new_below and y == self.viewport.height - 1,
            marks=self._marks[y] if y < len(self._marks) else (),
            selected=selection.get_span(key_of(row.position)) if selection is not None else None,
            cursor=cursor.point.column
            if cursor is not None and cursor.point.position == row.position
            else None,
        )

    def on_click(self, event: events.Click) -> None:
        """Fold, unfold or follow a link; a double click selects a word, a triple click a line."""
        offset = event.get_content_offset(self)
        if offset is None or not 0 <= offset.y < len(self._drawn):
            return
        row, item = self._drawn[offset.y]
        if event.chain > 1:
            event.prevent_default()  # Textual would select everything
            text = self._drawer.line(row.line).crop(0, offset.x).text
            self.select_around(row, len(text), whole_line=event.chain > 2)
            return
        address = event.style.meta.get("link")
        if address and not self.text_selection:
            self.post_message(self.LinkClicked(address))
        elif item.kind in FOLDED_KINDS and not self.text_selection and _is_head(row):
            self.turn(row.position.ordinal)

    def on_key(self, event: events.Key) -> None:
        """Pass the key to `takes_key`, if it is set."""
        if self.takes_key is None:
            return
        self._update()  # the cursor must move over current rows
        if self.takes_key(event):
            event.stop()
            event.prevent_default()

    # -- keeping the screen current

    def _adopt_look(self) -> None:
        """Adopt the current size and colors."""
        look = Look(self.scrollable_content_region.width, palette_of(self.app))
        if look.width <= 0:
            return
        if look != self._document.look:
            self._drawer.begin(
                look,
                selection=self.screen.get_component_rich_style("screen--selection"),
                filters=self.get_line_filters(),
                has_colors=not self.app.no_color,
            )
            self.screen.clear_selection()
        self.viewport.resize(look, self.scrollable_content_region.height)
        if self.cursor is not None:
            self.cursor.look_changed()
            self._have_in_sight(self.cursor.point.position)
        self._settle(all_rows=True)

    def _update(self, *, all_rows: bool = False) -> None:
        """Show changes, keeping the cursor in its text and in sight."""
        if self._document.look.width <= 0:  # not laid out yet
            return
        self.viewport.update()
        if self.cursor is not None:
            before = self.cursor.point
            self.cursor.find_again(self._document)
            self._have_in_sight(self.cursor.point.position)
            if self.cursor.point != before:
                self.refresh()
        self._settle(all_rows=all_rows)

    def _lay_out_more(self) -> None:
        """Lay out another slice of an unfinished text."""
        ordinal = self._document.unfinished()
        if ordinal is not None:
            self._document.advance(ordinal, SLICE)
        self._update()

    def _settle(self, *, all_rows: bool = False) -> None:
        """Update the scroll bar and redraw the rows that changed."""
        viewport, items = self.viewport, self._document.items
        before, self._drawn = self._drawn, [(row, items.at(row.position.ordinal)) for row in viewport.rows]
        were_marked, self._marks = self._marks, marks_in(self._document, viewport.rows, self._found)
        self.update_scroll_bar(self._document.look.width, viewport.height, viewport.top, viewport.total)
        if self._backlog is not None:
            more = self._document.unfinished() is not None
            (self._backlog.resume if more else self._backlog.pause)()
        news = viewport.is_new_below != self._had_news
        if news or viewport.follow != self._followed:
            self.post_message(self.Moved())
        self._had_news, self._followed = viewport.is_new_below, viewport.follow
        changed = [
            at
            for at in range(max(len(before), len(self._drawn)))
            if all_rows
            or (news and at == viewport.height - 1)
            or not _is_same(_at(before, at), _at(self._drawn, at))
            or were_marked[at : at + 1] != self._marks[at : at + 1]
        ]
        if len(changed) > viewport.height // 2:
            self.refresh()
        elif changed:
            self.refresh(*(Region(0, at, self.size.width + 2, 1) for at in changed))


def _is_head(row: Row) -> bool:
    return row.position.piece == 1 and row.position.line == 0


def _at(drawn: list[tuple[Row, Item]], at: int) -> tuple[Row, Item] | None:
    return drawn[at] if at < len(drawn) else None


def _is_same(before: tuple[Row, Item] | None, after: tuple[Row, Item] | None) -> bool:
    """Return whether a row's line, position and item status are unchanged."""
    if before is None or after is None:
        return before is after
    return (
        before[0].line == after[0].line
        and before[0].position == after[0].position
        and before[1].status is after[1].status
    )
