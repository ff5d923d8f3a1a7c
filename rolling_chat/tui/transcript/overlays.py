"""What is laid over ready rows: dimming, the selection, the reader's cursor, the mark of what is new."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from rolling_chat.tui.transcript.lines import Line
from rolling_chat.tui.transcript.palette import Palette
from rolling_chat.tui.transcript.render import LIVE_MARK

_NEWS = " ↓ new below "
_AT_CURSOR = Style(reverse=True)


def cell_of(strip: Strip, place: int) -> int:
    """The cell at which a character begins: places count characters, strips are cut by cells."""
    return cell_len(strip.text[:place])


def recolored(strip: Strip, style: Style) -> Strip:
    """All of a row in other colours."""
    return Strip(
        [Segment(text, (own or Style()) + style, control) for text, own, control in strip], strip.cell_length
    )


def live(strip: Strip, palette: Palette) -> Strip:
    """A row of an answer that is still coming."""
    return Strip.join([Strip([Segment(LIVE_MARK, palette.style(palette.accent))]), strip.crop(2)])


def selected(strip: Strip, line: Line, span: tuple[int, int], style: Style) -> Strip:
    """A row with a part of its text selected, from one character to another; -1 is its end."""
    start, end = max(span[0], line.gutter), span[1]
    stop = len(line.drawn) - line.margin
    first, last = cell_of(strip, start), cell_of(strip, stop if end == -1 else min(end, stop))
    if first >= last:
        return strip
    return Strip.join([strip.crop(0, first), recolored(strip.crop(first, last), style), strip.crop(last)])


def with_cursor(strip: Strip, column: int, width: int, ground: Style) -> Strip:
    """The row of the reader's cursor on a ground of its own, the character under it in reverse."""
    first, last = cell_of(strip, column), cell_of(strip, column + 1)
    row = recolored(strip.adjust_cell_length(width, ground), ground)
    first = min(first, width - 1)
    last = max(last, first + 1)
    return Strip.join([row.crop(0, first), recolored(row.crop(first, last), _AT_CURSOR), row.crop(last)])


def with_news(strip: Strip, width: int, palette: Palette) -> Strip:
    """A row that says that something came below it."""
    label = Strip([Segment(_NEWS, Style(color=palette.accent, bgcolor=palette.raised, bold=True))])
    room = width - label.cell_length
    if room < 0:
        return strip
    ground = palette.style(palette.text)
    return Strip.join([strip.adjust_cell_length(room, ground), label])
