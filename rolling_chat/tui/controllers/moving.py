"""The keys that move in the transcript, from wherever the person is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding

from rolling_chat.tui.state.items import Kind
from rolling_chat.tui.transcript.viewport import MESSAGES

if TYPE_CHECKING:
    from rolling_chat.tui.controllers.reading import ReadingController
    from rolling_chat.tui.screens.reader import ReaderScreen

_STEPS = (
    ("pageup", "pages", -1),
    ("pagedown", "pages", 1),
    ("ctrl+up", "lines", -1),
    ("ctrl+down", "lines", 1),
    ("ctrl+home", "edge", -1),
    ("ctrl+end", "edge", 1),
    ("alt+up", "messages", -1),
    ("alt+down", "messages", 1),
    ("alt+shift+up,alt+p", "yours", -1),
    ("alt+shift+down,alt+n", "yours", 1),
)
MOVE_KEYS = tuple(
    Binding(keys, f"move('{how}', {step})", show=False, priority=True) for keys, how, step in _STEPS
)


class Moves:
    """Moves what is looked at, and where the transcript is read by keys the cursor."""

    def __init__(self, screen: ReaderScreen, reading: ReadingController) -> None:
        self._screen = screen
        self._reading = reading

    def move(self, how: str, step: int) -> None:
        """By pages, lines, messages, the person's own messages, or to an edge."""
        view = self._screen.transcript
        kinds = MESSAGES if how == "messages" else (Kind.USER,)
        match how:
            case "lines":
                view.move_lines(step)
            case "pages" if self._reading.is_on:
                self._reading.page(step)
            case "pages":
                view.scroll_pages(step)
            case "edge" if self._reading.is_on:
                self._reading.move(lambda cursor: cursor.to_edge(step))
            case "edge":
                (view.scroll_to_start if step < 0 else view.scroll_to_newest)()
            case _ if self._reading.is_on:
                self._reading.move(lambda cursor: cursor.by_items(step, kinds))
            case _:
                view.scroll_items(step, kinds)
        self._screen.paint_rows()
