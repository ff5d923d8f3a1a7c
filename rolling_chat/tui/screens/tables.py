"""Lines and tables on a screen of their own, for `/context`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import DataTable, Static

from rolling_chat.text import one_line
from rolling_chat.tui.screens.framed import FramedScreen
from rolling_chat.tui.widgets.header import cut

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from rolling_chat.commands import Column, Table

_FRAME = 6  # border, padding and scroll bar, in cells
_CELL_PADDING = 2
_LEAST_COLUMN = 8
_LEAST_LAST = 24
_LOW_HEIGHT = 22  # rows: below it the tables above the last leave it room


class TablesScreen(FramedScreen[None]):
    """Shows them; esc, q or enter closes, tab goes from table to table."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,ctrl+c", "dismiss", "close", show=False),
    ]
    KEYS: ClassVar[str] = "↑↓ scroll · tab next table · esc close"
    DEFAULT_CSS = """
    TablesScreen > Vertical { width: 100%; height: 100%; }
    TablesScreen Static { height: auto; }
    TablesScreen DataTable {
        overflow-x: hidden; scrollbar-size-vertical: 1;
        height: auto; max-height: 50%; margin-top: 1; background: $surface;
    }
    TablesScreen.-low DataTable { max-height: 4; }
    TablesScreen DataTable.last { height: 1fr; max-height: 100%; min-height: 5; }
    TablesScreen DataTable > .datatable--header { background: $surface; color: $primary; text-style: bold; }
    TablesScreen DataTable > .datatable--cursor { background: $surface; color: $foreground; }
    TablesScreen DataTable:focus > .datatable--cursor { background: $panel; color: $foreground; }
    TablesScreen DataTable:nocolor:focus > .datatable--cursor { text-style: reverse; }
    """

    def __init__(self, title: str, lead: Sequence[str], tables: Sequence[Table]) -> None:
        super().__init__()
        self._title = title
        self._lead = tuple(lead)
        self._tables = tuple(tables)

    def compose(self) -> ComposeResult:
        """The lines, the tables, the keys."""
        with Vertical() as box:
            box.border_title = self._title
            box.border_subtitle = self.KEYS
            yield Static(lead_text(self._lead))
            for at, table in enumerate(self._tables):
                last = at == len(self._tables) - 1
                widget: DataTable[Text] = DataTable(cursor_type="row", classes="last" if last else "")
                fill(widget, table, self.app.size.width - _FRAME)
                yield widget

    def on_mount(self) -> None:
        """The longest table takes the keys."""
        self.query(DataTable).last().focus()

    def on_resize(self, event: events.Resize) -> None:
        """On few rows the last table comes first."""
        self.set_class(event.size.height < _LOW_HEIGHT, "-low")

    def show(self, lead: Sequence[str], tables: Sequence[Table]) -> None:
        """Show as many tables with other contents; the cursors stay where they are."""
        self.query(Static).first().update(lead_text(lead))
        for widget, table in zip(self.query(DataTable), tables, strict=True):
            row, top = widget.cursor_row, widget.scroll_y
            widget.clear(columns=True)
            fill(widget, table, self.app.size.width - _FRAME)
            widget.move_cursor(row=row, animate=False)
            widget.scroll_to(y=top, animate=False)


def lead_text(lead: Sequence[str]) -> Text:
    """The lines above the tables."""
    return Text("\n".join(one_line(line) for line in lead))


def fill(widget: DataTable[Text], table: Table, room: int) -> None:
    """Lay a table out in `room` cells; its last column gives way first."""
    rows = [tuple(one_line(cell) for cell in row) for row in table.rows]
    widths = [
        max(cell_len(cell) for cell in (column.title, *(row[at] for row in rows)))
        for at, column in enumerate(table.columns)
    ]
    _make_fit(widths, room - _CELL_PADDING * len(widths))
    for column, width in zip(table.columns, widths, strict=True):
        widget.add_column(_cell(column.title, column, width), width=width)
    for row in rows:
        widget.add_row(*(_cell(*cell) for cell in zip(row, table.columns, widths, strict=True)))


def _make_fit(widths: list[int], room: int) -> None:
    """Make columns narrower until they fit `room` cells: the last first, then the widest."""
    over = sum(widths) - room
    least = min(widths[-1], _LEAST_LAST)
    taken = max(0, min(over, widths[-1] - least))
    widths[-1] -= taken
    for _ in range(over - taken):
        widest = max(range(len(widths)), key=widths.__getitem__)
        if widths[widest] <= _LEAST_COLUMN:
            return
        widths[widest] -= 1


def _cell(text: str, column: Column, width: int) -> Text:
    short = cut(text, width)
    return Text(short.rjust(width) if column.right else short, no_wrap=True)
