"""Markdown tables as lines: widths by the first rows, cells wrapped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from rolling_chat.tui.transcript import inline
from rolling_chat.tui.transcript.lines import Line, cells, wrapped

Cell: TypeAlias = list[inline.Line]  # the lines of one cell
Row: TypeAlias = list[Cell]

_BETWEEN = " │ "
_LEAST = 3  # cells a column has at least
_MOST_NATURAL = 400  # a wider cell wraps anyway
_LONG = 8  # rows of which more may follow
_SHORT, _GROWTH = 12, 2  # cells: such a column of a long table counts or names, 99 is followed by 100


def column_widths(rows: Sequence[Row], width: int) -> list[int]:
    """The width of each column so that a row fits `width` cells; empty where the columns are too many.

    `rows` may be but the beginning of a long table: what is short leaves room for longer numbers.
    """
    columns = max((len(row) for row in rows), default=0)
    room = width - len(_BETWEEN) * (columns - 1)
    if not columns or room < columns * _LEAST:
        return []
    natural = [max((_natural(row[at]) for row in rows if at < len(row)), default=1) for at in range(columns)]
    growth = _GROWTH if len(rows) > _LONG else 0
    widths = [max(1, min(size + growth * (size <= _SHORT), _MOST_NATURAL)) for size in natural]
    over = sum(widths) - room
    while over > 0:
        # the widest gives way, down to the next widest at once
        widest = max(widths)
        tall = [at for at, size in enumerate(widths) if size == widest]
        below = max((size for size in widths if size < widest), default=_LEAST)
        step = max(1, min(widest - below, over // len(tall)))
        for at in tall:
            taken = min(step, over)
            widths[at] -= taken
            over -= taken
    return widths


def row_lines(row: Row, widths: Sequence[int], border: Style, aligns: Sequence[str]) -> list[Line]:
    """The lines of one row."""
    columns = [
        [line for spans in (row[at] if at < len(row) else []) for line in wrapped(spans, width)]
        for at, width in enumerate(widths)
    ]
    height = max(1, *(len(lines) for lines in columns))
    drawn: list[Line] = []
    for place in range(height):
        segments: list[Segment] = []
        for at, (lines, width) in enumerate(zip(columns, widths, strict=True)):
            if at:
                segments.append(Segment(_BETWEEN, border))
            line = lines[place] if place < len(lines) else Line(())
            room, align = max(0, width - cells(line)), aligns[at] if at < len(aligns) else ""
            left = room if align == "right" else room // 2 if align == "center" else 0
            last = at == len(widths) - 1
            if left:
                segments.append(Segment(" " * left, border))
            segments += line.segments
            if room - left and not last:
                segments.append(Segment(" " * (room - left), border))
        drawn.append(Line(tuple(segments)))
    return drawn


def under_header(widths: Sequence[int], border: Style) -> Line:
    """The line between the header and the rows."""
    return Line((Segment("─┼─".join("─" * width for width in widths), border),))


def _natural(cell: Cell) -> int:
    return max((sum(cell_len(text) for text, _ in line) for line in cell), default=0)
