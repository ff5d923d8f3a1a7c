"""The title row: program, session, model and folder."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual.widget import Widget

from rolling_chat.text import one_line

PROGRAM = "rolling-chat"


class Header(Widget):
    """A row with program, title, model and folder; a narrow row cuts the folder first, then the title."""

    DEFAULT_CSS = """
    Header { height: 1; padding: 0 1; background: $panel; color: $foreground; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._said = ("", "", "")
        self._title = ""
        self._model = ""
        self._folder = ""

    def show(self, title: str, model: str, folder: str) -> None:
        """Draw the title, the model and the folder, any of which may be untrusted text."""
        said = (title, model, folder)
        if said == self._said:
            return
        self._said = said
        self._title, self._model = one_line(title), one_line(model)
        self._folder = one_line(short_folder(folder))
        self.refresh()

    def render(self) -> Text:
        """Draw the row."""
        width = self.size.width
        right = f"{self._model} · {self._folder}" if self._folder else self._model
        room = width - len(PROGRAM) - 3
        if self._folder and cell_len(right) + cell_len(self._title) + 3 > room:
            right = f"{self._model} · {Path(self._folder).name or self._folder}"
        if cell_len(right) > room:
            right = self._model
        right = cut(right, max(0, room))
        middle = cut(self._title, max(0, room - cell_len(right) - 3))
        gap = max(1, width - len(PROGRAM) - 3 - cell_len(middle) - cell_len(right))
        line = Text(no_wrap=True, end="")
        line.append(PROGRAM, "bold")
        line.append("   ")
        line.append(middle)
        line.append(" " * gap)
        line.append(right, "dim" if not self.app.no_color else "")
        return line


def short_folder(folder: str) -> str:
    """Return a folder's path with the user's home directory as `~`."""
    path = Path(folder)
    try:
        return str(Path("~") / path.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return folder


def cut(text: str, width: int) -> str:
    """Return `text` in at most `width` cells, ending in `…` if something was cut off."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""
