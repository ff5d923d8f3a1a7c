"""A text of any length on a screen of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from rich.cells import chop_cells
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Log

from rolling_chat.text import one_line, visible
from rolling_chat.tui.dialogs.framed import FramedScreen

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.events import Resize


class TextScreen(FramedScreen[None]):
    """A screen that shows a whole text, wrapped at its width; Esc, q or Enter closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,ctrl+c", "dismiss", "close", show=False),
    ]
    DEFAULT_CSS = """
    TextScreen > Vertical { width: 100%; height: 100%; }
    TextScreen Log { background: $surface; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = visible(text)
        self._width = 0

    def compose(self) -> ComposeResult:
        """Lay out the text."""
        with Vertical() as box:
            box.border_title = one_line(self._title)
            box.border_subtitle = "↑↓ scroll · esc close"
            yield Log(auto_scroll=False)

    def on_mount(self) -> None:
        """Focus the text."""
        self.query_one(Log).focus()

    def on_resize(self, _event: Resize) -> None:
        """Wrap the lines again once the log has its size."""
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        log = self.query_one(Log)
        width = log.scrollable_content_region.width
        if width and width != self._width:
            self._width = width
            log.clear()
            # a Log drops empty lines
            log.write_lines(line or " " for line in folded(self._text, width))


def folded(text: str, width: int) -> Iterator[str]:
    """Yield the lines of `text`, with those of more than `width` cells broken up."""
    for line in text.split("\n"):
        if line.isascii():
            yield line[:width]
            yield from (line[at : at + width] for at in range(width, len(line), width))
        else:
            yield from chop_cells(line, width)
