"""A table that creates only the rows in sight, however many it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.geometry import Size, clamp
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rolling_chat.text import one_line
from rolling_chat.tui.widgets.header import cut

if TYPE_CHECKING:
    from textual import events

    from rolling_chat.commands import Column, Table

_PADDING = 1  # cells on either side of a cell
_MIN_COLUMN = 8
_MIN_LAST = 24
_FIRST, _SPREAD = 400, 200  # rows measured for column widths: the first ones, and a sample of the others


class RowTable(ScrollView, can_focus=True):
    """A table of plain strings under a header, with the cursor on one row."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"row-table--header", "row-table--cursor"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "turn_page(-1)", show=False),
        Binding("pagedown", "turn_page(1)", show=False),
        Binding("home,ctrl+home", "go_to_first", show=False),
        Binding("end,ctrl+end", "go_to_last", show=False),
    ]
    DEFAULT_CSS = """
    RowTable { background: $surface; overflow-x: hidden; scrollbar-size-vertical: 1; }
    RowTable > .row-table--header { color: $primary; text-style: bold; }
    RowTable:focus > .row-table--cursor { background: $panel; color: $foreground; text-style: bold; }
    RowTable:nocolor:focus > .row-table--cursor { text-style: bold reverse; }
    """

    class Moved(Message):
        """Posted when the cursor moved to another row."""

        def __init__(self, table: RowTable) -> None:
            super().__init__()
            self.table = table

        @property
        def control(self) -> RowTable:
            """The table whose cursor moved."""
            return self.table

    def __init__(self, table: Table, *, classes: str = "") -> None:
        super().__init__(classes=classes)
        self._table = table
        self._widths: list[int] = []
        self._room = -1  # the total width for which `_widths` were computed
        self.cursor_row = 0
        self._make_room()

    def show(self, table: Table) -> None:
        """Show another table and keep the cursor's row index."""
        self._table, self._room = table, -1
        self._make_room()
        self.move_cursor(self.cursor_row)

    def move_cursor(self, row: int) -> None:
        """Move the cursor to a row, or to the nearest one, and scroll it into sight."""
        row = clamp(row, 0, max(0, len(self._table.rows) - 1))
        self._have_in_sight(row)
        if row != self.cursor_row:
            self.cursor_row = row
            self.post_message(self.Moved(self))
        self.refresh()

    def action_move(self, rows: int) -> None:
        """Move the cursor up or down by rows."""
        self.move_cursor(self.cursor_row + rows)

    def action_turn_page(self, pages: int) -> None:
        """Move the cursor up or down by pages."""
        self.move_cursor(self.cursor_row + pages * max(1, self._in_sight))

    def action_go_to_first(self) -> None:
        """Move the cursor to the first row."""
        self.move_cursor(0)

    def action_go_to_last(self) -> None:
        """Move the cursor to the last row."""
        self.move_cursor(len(self._table.rows))

    # -- what Textual asks

    def get_content_height(self, _container: Size, _viewport: Size, _width: int) -> int:
        """Return the number of rows with the header."""
        return 1 + len(self._table.rows)

    def on_resize(self) -> None:
        """Scroll the cursor's row into sight."""
        self._have_in_sight(self.cursor_row)

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the row that was clicked."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.y > 0:
            self.move_cursor(self.scroll_offset.y + offset.y - 1)

    def render_line(self, y: int) -> Strip:
        """Draw the fixed header (line 0) or one of the rows below it."""
        row, width = self.scroll_offset.y + y - 1, self.scrollable_content_region.width
        if width != self._room:  # here and not in `on_resize`, so that old widths are never drawn
            self._room, self._widths = width, column_widths(self._table, width)
        if y == 0:
            titles = [column.title for column in self._table.columns]
            return self._strip(titles, width, "row-table--header")
        if row >= len(self._table.rows):
            return Strip.blank(width, self.rich_style)
        return self._strip(
            self._table.rows[row], width, "row-table--cursor" if row == self.cursor_row else ""
        )

    def _strip(self, cells: Sequence[str], width: int, name: str) -> Strip:
        style = self.get_component_rich_style(name) if name else self.rich_style
        parts = zip(
            cells, self._table.columns, self._widths, strict=False
        )  # a spare column may have no width
        text = "".join(f"{'':{_PADDING}}{_fitted(*part)}{'':{_PADDING}}" for part in parts)
        return Strip([Segment(text, style)]).adjust_cell_length(width, style)

    # -- the room there is

    @property
    def _in_sight(self) -> int:
        """The number of rows in sight below the header."""
        return self.size.height - 1

    def _have_in_sight(self, row: int) -> None:
        top, rows = self.scroll_offset.y, self._in_sight
        if rows > 0 and not top <= row < top + rows:
            to = row if row < top else row - rows + 1
            self.scroll_to(y=to, animate=False, immediate=True)

    def _make_room(self) -> None:
        self.virtual_size = Size(0, 1 + len(self._table.rows))


def column_widths(table: Table, room: int) -> list[int]:
    """Return the columns' widths in `room` cells, measured on a sample of the rows; the last shrinks first.

    A spare last column gets no width if there is no room for it.
    """
    rows = [table.rows[at] for at in _measured(len(table.rows))]
    widths = [
        max(cell_len(one_line(cell)) for cell in (column.title, *(row[at] for row in rows)))
        for at, column in enumerate(table.columns)
    ]
    left = room - sum(widths[:-1]) - 2 * _PADDING * len(widths)
    if table.columns[-1].spare and left < min(widths[-1], _MIN_LAST):
        widths.pop()
    _make_fit(widths, room - 2 * _PADDING * len(widths))
    return widths


def _measured(count: int) -> Sequence[int]:
    if count <= _FIRST + _SPREAD:
        return range(count)
    return [*range(_FIRST), *range(_FIRST, count, -(-(count - _FIRST) // _SPREAD))]


def _make_fit(widths: list[int], room: int) -> None:
    """Narrow the columns until they fit `room` cells: the last first, then the widest."""
    over = sum(widths) - room
    least = min(widths[-1], _MIN_LAST)
    taken = max(0, min(over, widths[-1] - least))
    widths[-1] -= taken
    for _ in range(over - taken):
        widest = max(range(len(widths)), key=widths.__getitem__)
        if widths[widest] <= _MIN_COLUMN:
            return
        widths[widest] -= 1


def _fitted(text: str, column: Column, width: int) -> str:
    short = cut(one_line(text), width)
    return " " * (width - cell_len(short)) + short if column.right else set_cell_size(short, width)
