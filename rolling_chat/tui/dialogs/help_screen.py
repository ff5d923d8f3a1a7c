"""Help: the keys and the commands, the latter from the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.table import Table
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from rolling_chat.commands import all_commands
from rolling_chat.tui.dialogs.framed import FramedScreen
from rolling_chat.tui.widgets.gauge_bar import GLYPHS, LABELS, TICK

if TYPE_CHECKING:
    from textual.app import ComposeResult

KEYS: tuple[tuple[str, str], ...] = (
    ("enter", "send; on a slash command, run it; queued while the model works"),
    ("shift+enter, ctrl+j", "new line (shift+enter where the terminal can say so)"),
    ("up, down", "the history of what was sent, from the first and the last line"),
    ("ctrl+r", "search the history; again for older, enter takes, esc returns the draft"),
    ("tab", "complete a slash command; beside a folded paste, unfold it; go to a question"),
    ("ctrl+x ctrl+e", "edit the draft in $VISUAL or $EDITOR"),
    ("1-5, up, down", "in a question: choose an answer; enter gives it, pages show the rest of a long one"),
    ("esc", "say no to a question, else stop the answer or /compact; hide the line about a summary"),
    ("ctrl+c", "copy the selection, else clear the draft, else stop; twice quits"),
    ("ctrl+o", "open or fold thinking and tool results"),
    ("ctrl+g", "the next request, message by message, as /context"),
    ("pageup, pagedown", "scroll; at the end it follows again"),
    ("ctrl+up, ctrl+down", "scroll by a line"),
    ("ctrl+home, ctrl+end", "to the beginning, to the end"),
    ("alt+up, alt+down", "the previous, the next message"),
    ("alt+p, alt+n", "your previous, your next message; also alt+shift+up, alt+shift+down"),
    ("ctrl+f", "find in the conversation; enter or down next, up or shift+enter previous, esc closes"),
    ("f6, shift+tab", "read by keys, with a cursor; what else is typed goes to the prompt"),
    ("f1", "this help"),
    ("ctrl+_, ctrl+y", "undo and redo in the prompt box"),
    ("ctrl+a, ctrl+e", "to the beginning, the end of the line"),
    ("alt+b, alt+f", "a word back, a word on"),
    ("ctrl+w, alt+d", "delete the word before, after the cursor"),
    ("ctrl+u, ctrl+k", "delete to the beginning, the end of the line"),
    ("ctrl+z", "back to the shell; fg returns"),
    ("ctrl+q", "quit; the session is kept"),
)

READING_KEYS: tuple[tuple[str, str], ...] = (
    ("up, down, j, k", "a line; left, right, ctrl+left, ctrl+right: a character, a word"),
    ("home, end, g, G", "to the beginning, to the end; pages as ever"),
    ("p, n", "the previous, the next message"),
    ("u, U", "your previous, your next message"),
    ("shift+arrows", "select; with ctrl words; shift+home, shift+end to the ends of the row"),
    ("v", "select with the plain keys; esc ends it"),
    ("y, ctrl+c", "copy the selection, or the line"),
    ("c, m", "copy the code block, the message under the cursor"),
    ("e, o", "open the message in $VISUAL or $EDITOR, as a copy; in $PAGER"),
    ("enter", "open or fold thinking and a tool's work"),
    ("/", "find"),
    ("esc", "back to the prompt"),
)


class HelpScreen(FramedScreen[None]):
    """Esc, f1, q or enter closes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q,enter,ctrl+c", "dismiss", "close", show=False),
    ]
    DEFAULT_CSS = """
    HelpScreen > Vertical { width: 100%; max-width: 100; height: auto; max-height: 100%; }
    HelpScreen VerticalScroll { height: auto; max-height: 1fr; scrollbar-size-vertical: 1; }
    HelpScreen VerticalScroll > Static { height: auto; }
    """

    def compose(self) -> ComposeResult:
        """Keys, commands, and how to read the gauge."""
        bold = f"bold {self.app.theme_variables['primary']}"
        with Vertical() as box:
            box.border_title = "Help"
            box.border_subtitle = "↑↓ scroll · esc close"
            with VerticalScroll():
                yield Static(Text("Keys", bold))
                yield Static(_grid(KEYS))
                yield Static(Text("\nWhile you read (f6)", bold))
                yield Static(_grid(READING_KEYS))
                yield Static(Text("\nCommands", bold))
                yield Static(_grid([(command.signature, command.summary) for command in all_commands()]))
                yield Static(Text("\nThe gauge, from the left", bold))
                yield Static(_grid(gauge_legend()))


def gauge_legend() -> list[tuple[str, str]]:
    """What each part of the gauge stands for."""
    legend = [(glyph * 3, LABELS[name]) for name, glyph in GLYPHS.items()]
    return [*legend, (TICK, "where the next trim comes, or with rolling off the refusal")]


def _grid(rows: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column()
    for key, what in rows:
        grid.add_row(Text(key), Text(what))
    return grid
