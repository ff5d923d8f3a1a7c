"""Lines of the transcript: rows of styled text, which know their gutter and how wrapping joins them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from rich.style import Style

from rolling_chat.text import visible

StyledLine: TypeAlias = list[tuple[str, Style]]
Spans: TypeAlias = Sequence[tuple[str, Style]]

TAB = 4
_TAB_META = {"tab": True}
# characters of one cell that never combine, so that an index is also a column
_ONE_CELL_EACH = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02ff\u0391-\u03a1\u03a3-\u0482"
    "\u2010-\u2027\u2030-\u205e\u2200-\u22ff\u2500-\u25fc]*"
)


@dataclass(frozen=True, slots=True)
class Line:
    """A row of styled text, at most as wide as requested.

    `gutter` and `margin` are the numbers of decoration characters at its front and end. If the row was
    wrapped, `joint` is the white space between its text and the next line's; it is None where a line of
    the text ends. `at` is its approximate index in the item's source, in characters, and never decreases.
    """

    segments: tuple[Segment, ...]
    gutter: int = 0
    margin: int = 0
    joint: str | None = None
    at: int = 0

    @property
    def drawn(self) -> str:
        """All characters of the row."""
        return "".join(segment.text for segment in self.segments)

    @property
    def text(self) -> str:
        """The row's text as it was written, without the gutter and with tabs restored."""
        return self.taken(0, None)

    def taken(self, first: int, last: int | None) -> str:
        """Return the text between two columns of the row, without the gutter; a tab is included whole."""
        taken, place = [], 0
        first, stop = max(first, self.gutter), len(self.drawn) - self.margin
        stop = stop if last is None else min(last, stop)
        for segment in self.segments:
            end = place + len(segment.text)
            begin, until = max(first, place), min(stop, end)
            if begin < until:
                is_tab = segment.style is not None and segment.style.meta == _TAB_META
                taken.append("\t" if is_tab else segment.text[begin - place : until - place])
            place = end
        return "".join(taken)


def wrapped(spans: Spans, width: int) -> list[Line]:
    """Wrap a line of text into rows of at most `width` cells, between words where possible."""
    segments = list(_segments(spans))
    text = "".join(segment.text for segment in segments)
    if len(text) <= width and text.isascii():
        return [Line(tuple(segments))]
    breaks = list(_breaks(text, max(1, width)))
    return [Line(tuple(_cut(segments, start, end)), joint=joint) for start, end, joint in breaks]


def wrapped_on(spans: Spans, width: int) -> tuple[list[Line], StyledLine]:
    """Wrap a line of text that will grow; return all rows but the last, and the spans of the last."""
    segments = list(_segments(spans))
    text = "".join(segment.text for segment in segments)
    *breaks, last = _breaks(text, max(1, width))
    rows = [Line(tuple(_cut(segments, start, end)), joint=joint) for start, end, joint in breaks]
    return rows, [(one.text, one.style or Style()) for one in _cut(segments, last[0], len(text))]


def folded(spans: Spans, width: int) -> list[Line]:
    """Fold a line of code into rows of at most `width` cells, keeping every character."""
    segments = list(_segments(spans))
    text = "".join(segment.text for segment in segments)
    if len(text) <= width and text.isascii():
        return [Line(tuple(segments))]
    breaks = list(_folds(text, max(1, width)))
    if len(breaks) == 1:
        return [Line(tuple(segments))]
    rows = [Line(tuple(_cut(segments, start, end)), joint="") for start, end in breaks]
    return [*rows[:-1], replace(rows[-1], joint=None)]


def framed(lines: Iterable[Line], first: Segment, rest: Segment, *, is_text: bool) -> list[Line]:
    """Put `first` before the first line and `rest` before the others.

    With `is_text` they are copied with the text, except on rows that continue a wrapped line.
    """
    drawn: list[Line] = []
    goes_on = False
    for line in lines:
        front = first if not drawn else rest
        keeps = is_text and not goes_on and not line.gutter
        gutter = 0 if keeps else line.gutter + len(front.text)
        drawn.append(replace(line, segments=_before(front, line), gutter=gutter))
        goes_on = line.joint is not None
    return drawn


def _before(front: Segment, line: Line) -> tuple[Segment, ...]:
    """Put a segment before a row, merging nested frames into one segment."""
    first, *others = line.segments or (Segment(""),)
    if first.style is front.style and 0 < len(first.text) <= line.gutter:
        return (Segment(front.text + first.text, front.style), *others)
    return (front, *line.segments)


def padded(line: Line, width: int, style: Style) -> Line:
    """Return a line filled to `width` cells in a style."""
    room = width - cells(line)
    if room <= 0:
        return line
    return replace(line, segments=(*line.segments, Segment(" " * room, style)), margin=line.margin + room)


def fitted(line: Line, width: int) -> Line:
    """Return a line cropped to `width` cells, which a single wide character may exceed."""
    if cells(line) <= width:
        return line
    return replace(line, segments=tuple(Segment.adjust_line_length(list(line.segments), width, pad=False)))


def cells(line: Line) -> int:
    """Return a line's width in cells."""
    return sum(cell_len(segment.text) for segment in line.segments)


def _segments(spans: Spans) -> Iterator[Segment]:
    """Yield spans as segments; a tab becomes spaces up to the next stop, in a segment of its own.

    All transcript text passes through here after decoding (`&#13;`), so it is made safe here.
    """
    column = 0
    for text, style in spans:
        if not text:
            continue
        if not text.isascii() or not text.isprintable():
            text = visible(text, tabs=True).replace("\n", "␊")  # noqa: PLW2901
        if "\t" not in text:
            yield Segment(text, style)
            column += len(text)
            continue
        for place, part in enumerate(text.split("\t")):
            if place:
                room = TAB - column % TAB
                yield Segment(" " * room, style + Style(meta=_TAB_META))
                column += room
            if part:
                yield Segment(part, style)
                column += len(part)


def _breaks(text: str, width: int) -> Iterator[tuple[int, int, str | None]]:
    """Yield the start and end of each row, and the white space dropped after it."""
    if not _is_even(text):
        yield from _wide_breaks(text, width)
        return
    at = 0
    while len(text) - at > width:
        cut = text.rfind(" ", at, at + width + 1)
        end = at + len(text[at:cut].rstrip(" ")) if cut > at else at
        if end <= at:
            yield at, at + width, ""
            at += width
            continue
        onward = _past_spaces(text, cut)
        if onward >= len(text):
            yield at, end, None
            return
        yield at, end, text[end:onward]
        at = onward
    yield at, len(text), None


def _wide_breaks(text: str, width: int) -> Iterator[tuple[int, int, str | None]]:
    """Yield the breaks of text with characters of two cells or none; it may break between wide ones."""
    marks, _ = split_graphemes(text)
    first = 0
    while first < len(marks):
        place, used, cut, is_space = first, 0, first, False
        while place < len(marks) and (used + marks[place][2] <= width or place == first):
            begin, _, size = marks[place]
            if text[begin] == " ":
                cut, is_space = place, True
            elif size > 1 and place > first:
                cut, is_space = place, False
            used += size
            place += 1
        if place >= len(marks):
            break
        if text[marks[place][0]] == " ":
            cut, is_space = place, True
        elif marks[place][2] > 1:
            cut, is_space = place, False
        start, stop = marks[first][0], marks[cut][0]
        end = start + len(text[start:stop].rstrip(" "))
        if cut <= first or end <= start:
            yield start, marks[place][0], ""
            first = place
            continue
        if not is_space:
            yield start, stop, ""
            first = cut
            continue
        while cut < len(marks) and text[marks[cut][0]] == " ":
            cut += 1
        if cut >= len(marks):
            yield start, end, None
            return
        yield start, end, text[end : marks[cut][0]]
        first = cut
    yield marks[first][0] if first < len(marks) else 0, len(text), None


def _folds(text: str, width: int) -> Iterator[tuple[int, int]]:
    if _is_even(text):
        for at in range(0, max(1, len(text)), width):
            yield at, min(len(text), at + width)
        return
    start, used = 0, 0
    for begin, _, size in split_graphemes(text)[0]:
        if used + size > width and begin > start:
            yield start, begin
            start, used = begin, 0
        used += size
    yield start, len(text)


def _is_even(text: str) -> bool:
    match = _ONE_CELL_EACH.match(text)
    return match is not None and match.end() == len(text)


def _past_spaces(text: str, at: int) -> int:
    while at < len(text) and text[at] == " ":
        at += 1
    return at


def _cut(segments: Sequence[Segment], start: int, end: int) -> Iterator[Segment]:
    place = 0
    for segment in segments:
        begin, until = max(start, place), min(end, place + len(segment.text))
        if begin < until:
            yield Segment(segment.text[begin - place : until - place], segment.style)
        place += len(segment.text)
        if place >= end:
            return
