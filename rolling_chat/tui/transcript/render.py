"""Draw each kind of item: the lines above, the head, the text, and the lines below."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from rolling_chat import figures
from rolling_chat.commands.marks import Mark
from rolling_chat.text import one_line
from rolling_chat.tui.state.items import Item, Kind, Status
from rolling_chat.tui.transcript.blocks import Block, BlockKind, Links
from rolling_chat.tui.transcript.colors import Look, Palette, diff_lines, is_diff
from rolling_chat.tui.transcript.lines import Line, cells, folded, framed, padded, wrapped

if TYPE_CHECKING:
    from rolling_chat.tui.transcript.growing import Growing

GUTTER = 2
LIVE_MARK = "▍ "
_CLOSE_TOGETHER = (Kind.TOOL, Kind.NOTICE, Kind.REASONING, Kind.ATTACHED)
_PROSE_CELLS = 120  # longer lines are hard to read
_HEAD_CHARS = 2000
_NARROW, _WIDE = 60, 100  # cells
_GAUGE_CELLS = 5

_TOOL_GLYPH = {Status.ASKING: "?", Status.FAILED: "✗", Status.REFUSED: "⊘", Status.CANCELLED: "■"}
_TOOL_WORD = {
    Status.LIVE: "running",
    Status.FORMING: "not run yet",
    Status.ASKING: "asks permission",
    Status.FAILED: "failed",
    Status.REFUSED: "refused",
    Status.CANCELLED: "cancelled",
}
_REPLY_WORD = {
    Status.CUT: "⋯ cut at the answer's limit",
    Status.CANCELLED: "■ stopped here",
    Status.FAILED: "✗ broken off here",
}


def warm_up() -> None:
    """Import the modules that drawing the first answer needs, about 60 ms; safe in any thread."""
    from rolling_chat.tui.transcript import growing, splitter  # noqa: F401, PLC0415
    from rolling_chat.tui.transcript.markdown import block_lines  # noqa: PLC0415

    block_lines(Block(BlockKind.CODE, "x = 1", 0, info="python"), 40, Palette(), {})


def gap_before(item: Item, above: Item | None) -> int:
    """Return how many empty lines separate an item from the one above it."""
    if above is None or (item.kind is above.kind and item.kind in _CLOSE_TOGETHER):
        return 0
    together = ({Kind.REASONING, Kind.TOOL}, {Kind.USER, Kind.ATTACHED})
    return 0 if {item.kind, above.kind} in together and item.kind is not Kind.USER else 1


def lead_lines(gap: int, rule: str, look: Look) -> list[Line]:
    """Return the lines above an item: empty ones, and the rule where the context begins."""
    if not rule:
        return [Line(())] * gap
    muted = look.palette.style(look.palette.muted)
    here = " context ──"
    *above, last = (row.drawn.rstrip() for row in wrapped([(f"── {rule}", muted)], max(1, look.width)))
    if cell_len(last) + 1 + len(here) >= look.width:
        above, last = [*above, last], ""
    words = f"{last} " if last else ""
    texts = [*above, words + "─" * (look.width - cell_len(words) - len(here)) + here]
    drawn = [Line((Segment(text, muted),), gutter=len(text)) for text in texts]
    return [*([Line(())] * gap), *drawn, Line(())]


def head_lines(item: Item, look: Look, *, is_open: bool, note: str) -> list[Line]:
    """Return the head line of a tool call, of reasoning or of an attached file; none for other items."""
    match item.kind:
        case Kind.REASONING:
            return [_reasoning_head(item, look, is_open=is_open)]
        case Kind.TOOL:
            return [_tool_head(item, look, note)]
        case Kind.ATTACHED:
            return [_attached_head(item, look, note, is_open=is_open)]
        case _:
            return []


def body_lines(
    item: Item, block: Block, look: Look, links: Links, *, is_first: bool, growing: Growing | None = None
) -> list[Line]:
    """Return the lines of one block of an item's text, at most `look.width` cells wide.

    `growing` keeps the drawn lines of a block that streams in.
    """
    palette, ground = look.palette, look.palette.style(look.palette.text)
    match item.kind:
        case Kind.ASSISTANT:
            from rolling_chat.tui.transcript.markdown import block_lines  # noqa: PLC0415  # not before an answer

            width, front = min(_PROSE_CELLS, max(1, look.width - GUTTER)), Segment("  ", ground)
            grown = growing.lines(block, width, palette, links, front) if growing is not None else None
            if grown is not None:
                return grown
            return framed(block_lines(block, width, palette, links), front, front, is_text=False)
        case Kind.USER:
            raised = palette.style(palette.text, bold=True, raised=True)
            mark = Segment("❯ " if is_first else "  ", palette.style(palette.accent, bold=True, raised=True))
            lines = _plain(block, look.width - GUTTER, raised)
            lines = framed(lines, mark, Segment("  ", raised), is_text=False)
            return [padded(line, look.width, palette.style(palette.text, raised=True)) for line in lines]
        case Kind.REASONING:
            style = palette.style(palette.muted, italic=True)
            front = Segment("  ", style)
            return framed(_plain(block, look.width - GUTTER, style), front, front, is_text=False)
        case Kind.TOOL | Kind.ATTACHED:
            return _tool_body(item, block, look)
        case Kind.NOTICE:
            style = palette.style(palette.warning if item.status is Status.WARNING else palette.muted)
            sign = "! " if item.status is Status.WARNING else "· "
            first, rest = Segment(sign if is_first else "  ", style), Segment("  ", style)
            return framed(_plain(block, look.width - GUTTER, style), first, rest, is_text=False)


def foot_lines(item: Item, look: Look) -> list[Line]:
    """Return the lines below an item: how it ended, and whether it is pinned or excluded."""
    palette, said = look.palette, list[Line]()
    if item.kind is Kind.ASSISTANT and (word := _REPLY_WORD.get(item.status)):
        color = palette.error if item.status is Status.FAILED else palette.warning
        said.append(_aside(word, palette.style(color)))
    if item.mark and item.kind in (Kind.USER, Kind.ASSISTANT):
        color = palette.accent if item.mark is Mark.PINNED else palette.muted
        said.append(_aside(str(item.mark), palette.style(color, raised=item.kind is Kind.USER)))
    if item.kind is Kind.USER:
        return [padded(line, look.width, palette.style(palette.text, raised=True)) for line in said]
    return said


def _aside(text: str, style: Style) -> Line:
    return Line((Segment(f"  {text}", style),), gutter=len(text) + 2)


def _plain(block: Block, width: int, style: Style) -> list[Line]:
    """Wrap a block's text as it is, with the approximate index in the source for each line."""
    lines: list[Line] = []
    at = block.start
    for part in block.source.split("\n"):
        place = at
        for line in wrapped([(part, style)], max(1, width)):
            lines.append(replace(line, at=place))
            place += len(line.text) + len(line.joint or "")
        at += len(part) + 1
    if block.joint is not None and lines:
        lines[-1] = replace(lines[-1], joint=block.joint)
    return lines


def _tool_body(item: Item, block: Block, look: Look) -> list[Line]:
    palette = look.palette
    muted = palette.style(palette.muted)
    width = max(1, look.width - 2 * GUTTER)
    parts = [[(part, muted)] for part in block.source.split("\n")]
    if is_diff(item.detail):
        parts = diff_lines(block.source, palette)
    front = Segment("  │ ", muted)
    at, lines = block.start, list[Line]()
    for part in parts:
        rows = folded(part, width)
        for line in framed(rows, front, front, is_text=False):
            lines.append(replace(line, at=at))
        at += sum(len(text) for text, _ in part) + 1
    if block.joint is not None and lines:
        lines[-1] = replace(lines[-1], joint=block.joint)
    return lines


def _reasoning_head(item: Item, look: Look, *, is_open: bool) -> Line:
    muted = look.palette.style(look.palette.muted)
    verb = "thinking" if item.status is Status.LIVE else "thought"
    fold = "▾" if is_open else "▸"
    text = f"{fold} {verb} · {figures.plural(len(item.text), 'character')}"
    return _sides([Segment(text, muted)], "" if is_open else "ctrl+o opens", look, muted)


def _attached_head(item: Item, look: Look, note: str, *, is_open: bool) -> Line:
    palette = look.palette
    muted = palette.style(palette.muted)
    left = [
        Segment(f"{'▾' if is_open else '▸'} ", muted),
        Segment(f"@{one_line(item.text, _HEAD_CHARS)}", palette.style(palette.secondary, bold=True)),
    ]
    return _sides(left, note, look, muted)


def _tool_head(item: Item, look: Look, note: str) -> Line:
    palette = look.palette
    color = {
        Status.FAILED: palette.error,
        Status.REFUSED: palette.warning,
        Status.CANCELLED: palette.warning,
        Status.ASKING: palette.warning,
    }.get(item.status, palette.muted)
    if item.outcome and item.status is Status.DONE:
        color = palette.warning  # it ran, but its own outcome is a failure
    name, _, arguments = one_line(item.text, _HEAD_CHARS).partition(" ")
    used = task_gauge(item, look.width)
    word = "" if used and item.status is Status.LIVE else _TOOL_WORD.get(item.status, "")
    left = [
        Segment(f"{_TOOL_GLYPH.get(item.status, '⚙')} ", palette.style(color, bold=True)),
        Segment(name, palette.style(palette.secondary, bold=True)),
        Segment(f" {arguments}" if arguments else "", palette.style(palette.text)),
    ]
    fate = note.removesuffix(f" · {item.mark.words}")  # the mark says that already
    failed = f"{word}: {item.outcome}" if word and item.outcome else word or item.outcome
    said = " · ".join(part for part in (item.mark, failed, item.form, used, fate, item.took) if part)
    if item.outcome and cell_len(said) > look.width * 2 // 3:  # drop the reason before the note
        said = " · ".join(part for part in (item.mark, word, item.form, used, fate, item.took) if part)
    return _sides(left, said, look, palette.style(color))


def task_gauge(item: Item, width: int) -> str:
    """Return the gauge of a task: how full its window is, its requests and their cost."""
    task = item.task
    if task is None:
        return ""
    if task.window and item.live and width < _NARROW:
        return f"{figures.tokens(task.tokens)}/{figures.window(task.window)}"
    parts = [figures.plural(task.requests, "request"), figures.cost(task.cost)]
    if task.window and (item.live or width >= _WIDE):
        cells = _GAUGE_CELLS if width < _WIDE else 2 * _GAUGE_CELLS
        full = min(cells, max(1, round(cells * task.tokens / task.window)))
        bar = "█" * full + "░" * (cells - full)
        parts.insert(0, f"{bar} {figures.tokens(task.tokens)} of {figures.window(task.window)}")
    return " · ".join(filter(None, parts))


def _sides(left: list[Segment], note: str, look: Look, style: Style) -> Line:
    """Return a line with a note at its right end; the left part is cut to make room."""
    room = look.width - (cell_len(note) + 2 if note else 0)
    if room < look.width // 3:
        note, room = "", look.width
    cut = _shortened(left, room)
    gap = " " * max(0, look.width - cells(Line(tuple(cut))) - cell_len(note))
    return Line((*cut, Segment(gap, style), Segment(note, style)) if note else tuple(cut))


def _shortened(line: list[Segment], room: int) -> list[Segment]:
    if sum(cell_len(segment.text) for segment in line) <= room:
        return line
    cut = Segment.adjust_line_length(line, max(0, room - 1), pad=False)
    return [*cut, Segment("…", cut[-1].style if cut else None)]
