"""The help screen: keys from their table, and commands from the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.table import Table
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from rolling_chat.commands import all_commands
from rolling_chat.tui.dialogs.framed import FramedScreen
from rolling_chat.tui.keymap import READING_KEYS, Keymap
from rolling_chat.tui.widgets.gauge import GLYPHS, LABELS, TICK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from rolling_chat.commands import Command


class HelpScreen(FramedScreen[None]):
    """A screen that lists the keys and the commands; Esc, the help key, q or Enter closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,ctrl+c", "dismiss", "close", show=False),
        Binding("f1", "dismiss", "close", id="help", show=False),
    ]
    DEFAULT_CSS = """
    HelpScreen > Vertical { width: 100%; max-width: 100; height: auto; max-height: 100%; }
    HelpScreen VerticalScroll { height: auto; max-height: 1fr; scrollbar-size-vertical: 1; }
    HelpScreen VerticalScroll > Static { height: auto; }
    """

    def __init__(self, keymap: Keymap, custom: Sequence[Command] = ()) -> None:
        super().__init__()
        self._keymap = keymap
        self._custom = custom

    def compose(self) -> ComposeResult:
        """Lay out the keys, the commands and the legend of the gauge."""
        bold = f"bold {self.app.theme_variables['primary']}"
        with Vertical() as box:
            box.border_title = "Help"
            box.border_subtitle = "↑↓ scroll · esc close"
            with VerticalScroll():
                yield Static(Text("Keys", bold))
                yield Static(_grid(list(self._keymap.help())))
                yield Static(Text(f"\nWhile you read ({self._keymap.hint('read')[0]})", bold))
                yield Static(_grid(READING_KEYS))
                yield Static(Text("\nCommands", bold))
                yield Static(_grid([(command.signature, command.summary) for command in all_commands()]))
                if self._custom:
                    yield Static(Text("\nCommands and skills of your own and of this folder", bold))
                    yield Static(_grid([(command.signature, command.summary) for command in self._custom]))
                yield Static(Text("\nThe gauge, from the left", bold))
                yield Static(_grid(gauge_legend()))


def gauge_legend() -> list[tuple[str, str]]:
    """Return an explanation of each part of the gauge."""
    legend = [(glyph * 3, LABELS[name]) for name, glyph in GLYPHS.items()]
    return [*legend, (TICK, "where the next trim comes, or with rolling off the refusal")]


def _grid(rows: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column()
    for key, what in rows:
        grid.add_row(Text(key), Text(what))
    return grid
