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


def on_ground(strip: Strip, width: int, ground: Style) -> Strip:
    """A row on a ground of its own, to its end."""
    return recolored(strip.adjust_cell_length(width, ground), ground)


def with_cursor(strip: Strip, column: int, width: int) -> Strip:
    """A row of `width` with the reader's cursor: the character under it the other way round."""
    first = min(cell_of(strip, column), width - 1)
    last = max(cell_of(strip, column + 1), first + 1)
    under = strip.crop(first, last)
    is_reversed = any(style is not None and style.reverse for _, style, _ in under)
    at_cursor = recolored(under, Style(reverse=not is_reversed))
    return Strip.join([strip.crop(0, first), at_cursor, strip.crop(last)])


def with_news(strip: Strip, width: int, palette: Palette) -> Strip:
    """A row that says that something came below it."""
    label = Strip([Segment(_NEWS, Style(color=palette.accent, bgcolor=palette.raised, bold=True))])
    room = width - label.cell_length
    if room < 0:
        return strip
    ground = palette.style(palette.text)
    return Strip.join([strip.adjust_cell_length(room, ground), label])
