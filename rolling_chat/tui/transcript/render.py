"""From an item to lines of rich segments, for one width and one palette. No Textual here."""

from __future__ import annotations

import io
import logging
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from rich.theme import Theme

from rolling_chat.commands import figures
from rolling_chat.commands.marks import Mark
from rolling_chat.text import one_line, visible
from rolling_chat.tui.transcript.items import Item, Kind, Status
from rolling_chat.tui.transcript.palette import Palette

if TYPE_CHECKING:
    from rolling_chat.tui.transcript.markdown import Block

Line: TypeAlias = list[Segment]

_log = logging.getLogger("rolling_chat.tui")

_GUTTER = 2
_CLOSE_TOGETHER = (Kind.TOOL, Kind.NOTICE, Kind.REASONING)
_DETAIL_LINES = 200
_PROSE_CELLS = 120  # longer lines are hard to read
_KEPT_BLOCKS = 2000
_PLAIN_CHARS = 400_000  # a longer message is shown as it stands: Markdown would hold the screen up

_TOOL_GLYPH = {
    Status.DONE: "⚙",
    Status.LIVE: "⚙",
    Status.FORMING: "⚙",
    Status.ASKING: "?",
    Status.FAILED: "✗",
    Status.REFUSED: "⊘",
    Status.CANCELLED: "■",
    Status.CUT: "⚙",
}
_TOOL_WORD = {
    Status.LIVE: "running",
    Status.FORMING: "not run yet",
    Status.ASKING: "asks leave",
    Status.FAILED: "failed",
    Status.REFUSED: "refused",
    Status.CANCELLED: "cancelled",
}
_REPLY_WORD = {
    Status.CUT: "⋯ cut at the answer's limit",
    Status.CANCELLED: "■ stopped here",
    Status.FAILED: "✗ broken off here",
}


@dataclass(frozen=True, slots=True)
class Look:
    """How items are drawn: cells across, colours, and whether what can be folded is open."""

    width: int
    palette: Palette
    details: bool = False


def render_item(item: Item, look: Look) -> list[Line]:
    """The lines of an item, each at most `look.width` cells wide."""
    match item.kind:
        case Kind.USER:
            lines = _user(item, look)
        case Kind.ASSISTANT:
            lines = _assistant(item, look)
        case Kind.REASONING:
            lines = _reasoning(item, look)
        case Kind.TOOL:
            lines = _tool(item, look)
        case Kind.NOTICE:
            lines = _notice(item, look)
    if item.mark and item.kind is not Kind.NOTICE:
        lines = _marked(lines, item, look)
    return [_fit(line, look.width) for line in lines]


def gap_before(item: Item, above: Item | None) -> int:
    """How many empty lines part an item from the one above it."""
    if above is None or (item.kind is above.kind and item.kind in _CLOSE_TOGETHER):
        return 0
    return 0 if {item.kind, above.kind} == {Kind.REASONING, Kind.TOOL} else 1


def _user(item: Item, look: Look) -> list[Line]:
    palette = look.palette
    mark = palette.style(palette.accent, bold=True, raised=True)
    body = palette.style(palette.text, bold=True, raised=True)
    lines = _plain(visible(item.text), look.width - _GUTTER, body)
    drawn = [[Segment("❯ " if not at else "  ", mark), *line] for at, line in enumerate(lines)]
    if item.status is Status.QUEUED:
        muted = palette.style(palette.muted, italic=True, raised=True)
        drawn.append([Segment("  queued: sent when this turn is over · up takes it back", muted)])
    ground = palette.style(palette.text, raised=True)
    return [_pad(line, look.width, ground) for line in drawn]


def _assistant(item: Item, look: Look) -> list[Line]:
    palette = look.palette
    width = min(_PROSE_CELLS, look.width - _GUTTER)
    lines = _markdown(visible(item.text), width, palette) if item.text.strip() else []
    live = item.status is Status.LIVE
    mark = Segment("▍ ", palette.style(palette.accent)) if live else Segment("  ")
    drawn = [[mark, *line] for line in lines]
    word = _REPLY_WORD.get(item.status)
    if word:
        color = palette.error if item.status is Status.FAILED else palette.warning
        drawn.append([Segment(f"  {word}", palette.style(color))])
    return drawn


def _reasoning(item: Item, look: Look) -> list[Line]:
    palette = look.palette
    muted = palette.style(palette.muted)
    size = figures.plural(len(item.text), "character")
    verb = "thinking" if item.status is Status.LIVE else "thought"
    fold = "▾" if look.details else "▸"
    hint = "" if look.details else "ctrl+o opens"
    head = _sides([Segment(f"{fold} {verb} · {size}", muted)], hint, look, muted)
    if not look.details:
        return [head]
    body = _plain(visible(item.text), look.width - _GUTTER, palette.style(palette.muted, italic=True))
    return [head, *([Segment("  "), *line] for line in body)]


def _tool(item: Item, look: Look) -> list[Line]:
    palette = look.palette
    color = {
        Status.FAILED: palette.error,
        Status.REFUSED: palette.warning,
        Status.CANCELLED: palette.warning,
        Status.ASKING: palette.warning,
    }.get(item.status, palette.muted)
    name, _, arguments = one_line(item.text).partition(" ")
    word = _TOOL_WORD.get(item.status, "")
    note = " · ".join(part for part in (item.mark, word, item.note) if part)
    left = [
        Segment(f"{_TOOL_GLYPH.get(item.status, '⚙')} ", palette.style(color, bold=True)),
        Segment(name, palette.style(palette.secondary, bold=True)),
        Segment(f" {arguments}" if arguments else "", palette.style(palette.text)),
    ]
    head = _sides(left, note, look, palette.style(color))
    if not look.details or not item.detail:
        return [head]
    body = _plain(visible(item.detail), look.width - 2 * _GUTTER, palette.style(palette.muted))
    more = len(body) - _DETAIL_LINES
    drawn = [[Segment("  │ ", palette.style(palette.muted)), *line] for line in body[:_DETAIL_LINES]]
    if more > 0:
        drawn.append([Segment(f"  └ {figures.plural(more, 'line')} more", palette.style(palette.muted))])
    return [head, *drawn]


def _notice(item: Item, look: Look) -> list[Line]:
    palette = look.palette
    warning = item.status is Status.WARNING
    style = palette.style(palette.warning if warning else palette.muted)
    lines = _plain(visible(item.text), look.width - _GUTTER, style)
    mark = "! " if warning else "· "
    return [[Segment(mark if not at else "  ", style), *line] for at, line in enumerate(lines)]


def _marked(lines: list[Line], item: Item, look: Look) -> list[Line]:
    """What is excluded grey, and under a message what the person did to it; a tool's line says so itself."""
    palette = look.palette
    if item.mark is Mark.EXCLUDED:
        grey = Style(color=palette.muted)
        lines = [
            [Segment(part.text, (part.style or Style()) + grey, part.control) for part in line]
            for line in lines
        ]
    if item.kind not in (Kind.USER, Kind.ASSISTANT):
        return lines
    raised = item.kind is Kind.USER
    said = [Segment(f"  {item.mark}", palette.style(_mark_color(item.mark, palette), raised=raised))]
    ground = palette.style(palette.text, raised=raised)
    return [*lines, _pad(said, look.width, ground) if raised else said]


def _mark_color(mark: Mark, palette: Palette) -> str:
    return palette.accent if mark is Mark.PINNED else palette.muted


def _markdown(text: str, width: int, palette: Palette) -> list[Line]:
    """Markdown, or the text as it stands where it is too large or cannot be laid out.

    A block that was drawn before is not drawn again: of an answer that streams, only the last is.
    """
    base = palette.style(palette.text)
    if len(text) > _PLAIN_CHARS:
        return _plain(text, width, base)
    # markdown-it and pygments come in with the first answer, not with the first paint
    from rolling_chat.tui.transcript.markdown import blocks_of  # noqa: PLC0415

    lines: list[Line] = []
    for block in blocks_of(text):
        drawn = _block(block, width, palette)
        if lines and drawn:
            lines.append([Segment("")])
        lines.extend(drawn)
    return lines or _plain(text, width, base)  # a lone `#` or a link's definition is text, too


@lru_cache(maxsize=_KEPT_BLOCKS)
def _block(block: Block, width: int, palette: Palette) -> list[Line]:
    from rolling_chat.tui.transcript.markdown import TranscriptMarkdown  # noqa: PLC0415

    base = palette.style(palette.text)
    console = _console(palette)
    try:
        options = console.options.update(width=max(1, width), height=None)
        source = TranscriptMarkdown(block, dark=palette.dark)
        lines = console.render_lines(source, options, style=base, pad=False)
    except Exception:  # a layout that rich cannot make (quotes in quotes beyond the width) must not hide text
        _log.debug("Markdown could not be laid out; shown as plain text", exc_info=True)
        return _plain(block.source, width, base)
    lines = [_without_links(line) for line in lines]
    while lines and _is_blank(lines[-1]):
        lines.pop()
    while lines and _is_blank(lines[0]):
        lines.pop(0)
    return lines


def _is_blank(line: Line) -> bool:
    return not "".join(segment.text for segment in line).strip()


def _plain(text: str, width: int, style: Style) -> list[Line]:
    """Text wrapped at `width` cells, every line of it kept."""
    console = _console(Palette())
    options = console.options.update(width=max(1, width), height=None)
    lines: list[Line] = []
    for paragraph in text.split("\n"):
        if cell_len(paragraph) <= width:
            lines.append([Segment(paragraph, style)])
        else:
            shown = Text(paragraph, style=style, overflow="fold")
            lines.extend(console.render_lines(shown, options, pad=False))
    return lines


@lru_cache(maxsize=8)
def _console(palette: Palette) -> Console:
    """A console that only lays out: it writes nowhere and asks the terminal nothing."""
    return Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        width=80,
        height=1000,
        theme=Theme(dict(palette.markdown_styles())),
        _environ={},
    )


def _without_links(line: Line) -> Line:
    """No hyperlink of a foreign text reaches the terminal."""
    return [
        Segment(text, style.update_link(None) if style is not None and style.link else style)
        for text, style, _ in line
    ]


def _sides(left: Line, note: str, look: Look, style: Style) -> Line:
    """One line with a note at its right end; the left part gives way."""
    room = look.width - (cell_len(note) + 2 if note else 0)
    if room < look.width // 3:
        note, room = "", look.width
    cut = _shortened(left, room)
    used = sum(cell_len(segment.text) for segment in cut)
    gap = " " * max(0, look.width - used - cell_len(note))
    return [*cut, Segment(gap), Segment(note, style)] if note else cut


def _shortened(line: Line, room: int) -> Line:
    if sum(cell_len(segment.text) for segment in line) <= room:
        return line
    cut = Segment.adjust_line_length(line, max(0, room - 1), pad=False)
    return [*cut, Segment("…", cut[-1].style if cut else None)]


def _fit(line: Line, width: int) -> Line:
    """Never wider than the screen: a lone wide character may not fit its line."""
    if sum(cell_len(segment.text) for segment in line) <= width:
        return line
    return Segment.adjust_line_length(line, width, pad=False)


def _pad(line: Line, width: int, style: Style) -> Line:
    used = sum(cell_len(segment.text) for segment in line)
    return [*line, Segment(" " * max(0, width - used), style)]
