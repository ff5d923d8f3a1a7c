"""Lines and tables on a screen of their own, for `/context`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Static

from rolling_chat.text import one_line
from rolling_chat.tui.dialogs.framed import FramedScreen
from rolling_chat.tui.widgets.row_table import RowTable

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from rolling_chat.commands import Table

_LOW_HEIGHT, _TINY_HEIGHT = 22, 19  # rows: on a lower screen, all tables but the last shrink, or are hidden


class TablesScreen(FramedScreen[None]):
    """A screen that shows lines above tables; Esc, q or Enter closes it, Tab goes to the next table."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,ctrl+c", "dismiss", "close", show=False),
    ]
    KEYS: ClassVar[str] = "↑↓ scroll · tab next table · esc close"
    DEFAULT_CSS = """
    TablesScreen > Vertical { width: 100%; height: 100%; }
    TablesScreen Static { height: auto; }
    TablesScreen.-tiny .lead { max-height: 25vh; }
    TablesScreen RowTable { height: auto; max-height: 50%; margin-top: 1; }
    TablesScreen.-low RowTable { max-height: 4; }
    TablesScreen.-tiny RowTable { display: none; }
    TablesScreen RowTable.last { display: block; height: 1fr; max-height: 100%; min-height: 3; }
    """

    def __init__(self, title: str, lead: Sequence[str], tables: Sequence[Table]) -> None:
        super().__init__()
        self._title = title
        self._lead = tuple(lead)
        self._tables = tuple(tables)

    def compose(self) -> ComposeResult:
        """Lay out the lines above the tables."""
        with Vertical() as box:
            box.border_title = self._title
            box.border_subtitle = self.KEYS
            yield Static(lead_text(self._lead), classes="lead")
            for at, table in enumerate(self._tables):
                last = at == len(self._tables) - 1
                yield RowTable(table, classes="last" if last else "")

    def on_mount(self) -> None:
        """Focus the last table, which is the longest."""
        self.query(RowTable).last().focus()

    def on_resize(self, event: events.Resize) -> None:
        """Give the last table most of the room in a low terminal."""
        self.set_class(event.size.height < _LOW_HEIGHT, "-low")
        self.set_class(event.size.height < _TINY_HEIGHT, "-tiny")

    def show(self, lead: Sequence[str], tables: Sequence[Table]) -> None:
        """Replace the contents of lines and tables, whose number must be the same, keeping the cursors."""
        self.query(Static).first().update(lead_text(lead))
        for widget, table in zip(self.query(RowTable), tables, strict=True):
            widget.show(table)


def lead_text(lead: Sequence[str]) -> Text:
    """Return the lines above the tables as one text."""
    return Text("\n".join(one_line(line) for line in lead))
