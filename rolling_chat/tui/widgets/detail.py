"""A text of any length in a few rows: its beginning, a count of the hidden rows, and its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from rolling_chat.figures import plural
from rolling_chat.text import max_cells

_ROWS_FOR_A_COUNT = 3  # a first row, the count, a last row
_ROWS_FOR_TWO_LAST = 6
_WHEEL = 3


class Detail(Widget):
    """A text in a few rows that scroll, with a count of the hidden rows.

    `part` names what a diff's `@@` lines begin, "hunk"; hidden ones are counted too.

    `unseen` counts the rows that were never in sight. Paging shows them; jumping to the end does not, as
    it skips rows. A change of width wraps the text anew and resets the count.
    """

    DEFAULT_CSS = """
    Detail { width: 1fr; height: auto; }
    """

    @dataclass
    class Scrolled(Message):
        """Posted when the text was scrolled."""

    def __init__(self, text: Text, *, part: str = "", id: str | None = None) -> None:
        super().__init__(id=id)
        self._text = text
        self._part = part
        self._width = 0
        self._rows: Sequence[Text] = ()
        self._max_rows = _ROWS_FOR_A_COUNT
        self._top = 0
        self._seen = 0  # length of the seen prefix: rows seen from the first on without a gap

    @property
    def unseen(self) -> int:
        """The number of rows that were never in sight; 1 before the first layout."""
        if not self._width:
            return 1
        if self.is_whole:
            return 0
        return max(0, len(self._rows) - self._last - self._seen)

    def color_lines(self, colors: Mapping[str, str]) -> None:
        """Color each line by its first character; call it before the first layout."""
        start = 0
        for line in self._text.plain.split("\n"):
            if color := colors.get(line[:1]):
                self._text.stylize(color, start, start + len(line))
            start += len(line) + 1

    def allow_rows(self, max_rows: int) -> None:
        """Limit the height to `max_rows` rows."""
        if max_rows != self._max_rows:
            self._max_rows = max_rows
            self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the height of the wrapped text, up to the limit."""
        del container, viewport
        self._wrap(width)
        return min(len(self._rows), self._max_rows)

    def render(self) -> Text:
        """Draw the rows in sight, the count of the others, and the last rows."""
        self._wrap(self.size.width)
        rows = self._rows
        if not self.is_whole:
            first, end = self._top, len(rows) - self._last
            count = [self._count()] if self._height >= _ROWS_FOR_A_COUNT else []
            rows = [*rows[first : first + self._body], *count, *rows[end:]]
        return Text("\n", no_wrap=True, overflow="crop").join(rows)

    def on_resize(self, event: events.Resize) -> None:
        """Wrap the text to the new width."""
        self._wrap(event.size.width)
        self._show_from(self._top)

    @property
    def is_whole(self) -> bool:
        """Whether the whole text is in sight."""
        return len(self._rows) <= self._height

    def scroll_pages(self, pages: int) -> None:
        """Scroll by `pages` pages, up for a negative number."""
        self._show_from(self._top + pages * self._body)

    def scroll_to_edge(self, step: int) -> None:
        """Scroll to the end if `step` is positive, otherwise to the beginning."""
        self._show_from(len(self._rows) if step > 0 else 0)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll down by a few rows."""
        event.stop()
        self._show_from(self._top + min(_WHEEL, self._body))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll up by a few rows."""
        event.stop()
        self._show_from(self._top - min(_WHEEL, self._body))

    @property
    def _height(self) -> int:
        return self.size.height

    @property
    def _last(self) -> int:
        if self._height < _ROWS_FOR_A_COUNT:
            return 0
        return 2 if self._height >= _ROWS_FOR_TWO_LAST else 1

    @property
    def _body(self) -> int:
        return self._height - self._last - 1 if self._last else self._height

    def _count(self) -> Text:
        below = max(0, len(self._rows) - self._last - self._body - self._top)
        hidden = self._rows[self._top + self._body : self._top + self._body + below]
        hunks = sum(row.plain.startswith("@@ ") for row in hidden) if self._part else 0
        inside = f" in {plural(hunks, self._part)}" if hunks > 1 else ""
        parts = [f"{plural(below, 'more line')}{inside}"] if below else []
        parts += [f"{plural(self._top, 'line')} above"] if self._top else []
        return Text(f"⋯ {' · '.join(parts)} ⋯", style="bold reverse")

    def _wrap(self, width: int) -> None:
        if width > 0 and width != self._width:
            self._width, self._top, self._seen = width, 0, 0
            self._rows = self._wrapped()

    def _wrapped(self) -> Sequence[Text]:
        rows = self._text.wrap(self.app.console, self._width, overflow="fold")
        return [part for row in rows for part in _folded(row, self._width)]

    def _show_from(self, top: int) -> None:
        if not self._height:
            return
        last_top = max(0, len(self._rows) - self._last - self._body)
        self._top = max(0, min(top, last_top))
        if self._top <= self._seen:
            self._seen = max(self._seen, self._top + self._body)
        self.refresh()
        self.post_message(self.Scrolled())


def _folded(row: Text, width: int) -> Sequence[Text]:
    """Fold a row that some terminals draw wider than `width`, so that its end stays in sight."""
    if row.plain.isascii():
        return (row,)
    offsets: list[int] = []
    used = 0
    for index, char in enumerate(row.plain):
        cells = max_cells(char)
        if used and used + cells > width:
            offsets.append(index)
            used = 0
        used += cells
    return list(row.divide(offsets))
