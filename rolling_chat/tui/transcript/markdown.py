"""Draw a Markdown block as lines, for one width and one palette.

A module of its own because it imports pygments, which the first paint does not need.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from rolling_chat.tui.transcript.blocks import Block, BlockKind, Links
from rolling_chat.tui.transcript.lines import Line, StyledLine, cells, folded, framed, padded, wrapped
from rolling_chat.tui.transcript.markdown_syntax import MAX_NESTING, PARSER, first_number
from rolling_chat.tui.transcript.spans import code_lines, inline_lines

if TYPE_CHECKING:
    from markdown_it.token import Token

    from rolling_chat.tui.transcript.colors import Palette


Cell: TypeAlias = list[StyledLine]  # the lines of one cell
TableRow: TypeAlias = list[Cell]

_log = logging.getLogger("rolling_chat.tui")

_MIN_WIDTH = 8  # cells that nested frames leave for the text
_BAR = "▌ "
_CONTAINERS = ("bullet_list_open", "ordered_list_open", "blockquote_open")

_BETWEEN = " │ "
_MIN_COLUMN = 3  # cells
_MAX_COLUMN = 400  # cells; a wider one wraps anyway
_LONG_TABLE = 8  # rows; a table with more may still grow
_SHORT, _GROWTH = 12, 2  # cells: a short column of a long table may widen, as 99 is followed by 100


def block_lines(block: Block, width: int, palette: Palette, links: Links) -> list[Line]:
    """Return the lines of a block, at least one, without the empty line above it."""
    pen = _Pen(palette, links)
    inner = max(min(width, _MIN_WIDTH), width - sum(frame.indent for frame in block.frames))
    try:
        lines = pen.block(block, inner)
    except Exception:  # a layout that cannot be made must not hide text
        _log.debug("Markdown could not be laid out; shown as plain text", exc_info=True)
        lines = pen.plain(block.source, inner)
    if not any(line.drawn.strip() for line in lines):  # a lone `#` is text, too
        lines = pen.plain(block.source, inner)
    if block.joint is not None and lines:
        lines[-1] = replace(lines[-1], joint=block.joint)
    return _placed(pen.in_frames(lines, block), block)


def _placed(lines: list[Line], block: Block) -> list[Line]:
    """Return the lines with their approximate indices in the source, which never decrease."""
    at, last = 0, max(0, len(block.source) - 1)
    placed: list[Line] = []
    for line in lines:
        placed.append(replace(line, at=block.start + min(at, last)))
        at += len(line.text) + (1 if line.joint is None else len(line.joint))
    return placed


@dataclass(frozen=True, slots=True)
class _Node:
    """A block token and the nodes inside it."""

    token: Token
    children: tuple[_Node, ...] = ()


def _tree(tokens: Sequence[Token]) -> tuple[_Node, ...]:
    nodes, _ = _siblings(tokens, 0)
    return nodes


def _siblings(tokens: Sequence[Token], at: int) -> tuple[tuple[_Node, ...], int]:
    nodes: list[_Node] = []
    while at < len(tokens) and tokens[at].nesting >= 0:
        token = tokens[at]
        if token.nesting == 0:
            nodes.append(_Node(token))
            at += 1
            continue
        children, end = _siblings(tokens, at + 1)
        nodes.append(_Node(token, children))
        at = end + 1
    return tuple(nodes), at


@dataclass(frozen=True, slots=True)
class _Pen:
    """A renderer of blocks in one palette, with the link definitions known so far."""

    palette: Palette
    links: Links

    def block(self, block: Block, width: int) -> list[Line]:
        base = self._base
        match block.kind:
            case BlockKind.CODE:
                return self._code(block.source, block.info, block.context, width)
            case BlockKind.PLAIN:
                return self.plain(block.source, width)
            case BlockKind.ROWS:
                return self._more_rows(block, width)
            case BlockKind.INLINE:
                tokens = PARSER.parseInline(block.source, self._environment)
                return self._text(tokens[0].children or (), width, base)
            case BlockKind.MARKDOWN:
                tokens = PARSER.parse(block.source, self._environment)
                if any(token.level >= MAX_NESTING - 1 for token in tokens):
                    return self.plain(block.source, width)
                nodes = _tree(tokens)
                if block.number is not None and nodes:
                    nodes[0].token.attrSet("start", str(block.number))
                return self._nodes(nodes, block.source.split("\n"), width, base)

    def plain(self, text: str, width: int) -> list[Line]:
        return [line for part in text.split("\n") for line in folded([(part, self._base)], width)]

    def in_frames(self, lines: list[Line], block: Block) -> list[Line]:
        for depth, frame in enumerate(reversed(block.frames)):
            bar = Segment(_BAR if not frame.marker else " " * frame.indent, self._muted)
            first = bar
            if frame.marker and depth < block.opens:
                first = Segment(frame.marker.ljust(frame.indent)[: frame.indent], self._marker)
            lines = framed(lines, first, bar, is_text=bool(frame.marker))
        return lines

    @property
    def _environment(self) -> dict[str, Any]:
        return {"references": dict(self.links)}

    @property
    def _base(self) -> Style:
        return self.palette.style(self.palette.text)

    @property
    def _muted(self) -> Style:
        return self.palette.style(self.palette.muted)

    @property
    def _marker(self) -> Style:
        return self.palette.style(self.palette.accent, bold=True)

    def _nodes(self, nodes: Sequence[_Node], source: Sequence[str], width: int, base: Style) -> list[Line]:
        """Draw blocks below each other, separated by empty lines except around tight lists."""
        lines: list[Line] = []
        above: _Node | None = None
        for node in nodes:
            drawn = self._node(node, source, width, base)
            if not drawn:
                continue
            if above is not None and _apart(above, node, source):
                lines.append(Line(()))
            lines += drawn
            above = node
        return lines

    def _node(self, node: _Node, source: Sequence[str], width: int, base: Style) -> list[Line]:
        token = node.token
        if token.type in _CONTAINERS and width < _MIN_WIDTH:
            first, last = token.map or (0, len(source))
            return self.plain("\n".join(line.strip() for line in source[first:last]), width)
        match token.type:
            case "heading_open":
                return self._heading(node, width)
            case "paragraph_open":
                return self._text(_inline(node), width, base)
            case "inline":
                return self._text(token.children or (), width, base)
            case "fence" | "code_block":
                return self._code(token.content, token.info.strip(), "", width)
            case "bullet_list_open" | "ordered_list_open":
                return self._list(node, source, width, base)
            case "blockquote_open":
                quiet = base + Style(color=self.palette.muted, italic=True)
                lines = self._nodes(node.children, source, max(1, width - len(_BAR)), quiet)
                bar = Segment(_BAR, self._muted)
                return framed(lines, bar, bar, is_text=False)
            case "table_open":
                return self._table(node, source, width)
            case "hr":
                return [Line((Segment("─" * width, self._muted),), gutter=width)]
            case _:
                return self.plain(token.content, width) if token.content else []

    def _heading(self, node: _Node, width: int) -> list[Line]:
        style = self.palette.style(self.palette.accent, bold=True)
        if node.token.tag == "h1":
            style += Style(underline=True)
        return self._text(_inline(node), width, style)

    def _text(self, tokens: Sequence[Token], width: int, base: Style) -> list[Line]:
        spans = inline_lines(tokens, base, self.palette)
        return [line for part in spans for line in wrapped(part, width)]

    def _code(self, code: str, info: str, above: str, width: int) -> list[Line]:
        ground = self.palette.style(self.palette.text, raised=True)
        spans = code_lines(code.removesuffix("\n"), info, above, self.palette)
        front = Segment(" ", ground)
        lines = [line for part in spans for line in folded(part, max(1, width - 2))]
        return [padded(line, width, ground) for line in framed(lines, front, front, is_text=False)]

    def _list(self, node: _Node, source: Sequence[str], width: int, base: Style) -> list[Line]:
        lines: list[Line] = []
        number = first_number(node.token)
        last = (number or 0) + len(node.children) - 1
        above: _Node | None = None
        for item in node.children:
            marker = "• " if number is None else f"{number}.".ljust(len(f"{last}. "))
            room = max(1, width - len(marker))
            inner = self._nodes(item.children, source, room, base) or [Line(())]
            if above is not None and _has_blank_above(item, source):
                lines.append(Line(()))
            rest = Segment(" " * len(marker), base)
            lines += framed(inner, Segment(marker, self._marker), rest, is_text=True)
            number = None if number is None else number + 1
            above = item
        return lines

    def _table(self, node: _Node, source: Sequence[str], width: int) -> list[Line]:
        header, rows, aligns = self._rows(node)
        widths = column_widths([*header, *rows], width)
        if not widths:
            first, last = node.token.map or (0, len(source))
            return self.plain("\n".join(source[first:last]), width)
        lines = [line for row in header for line in row_lines(row, widths, self._muted, aligns)]
        lines.append(under_header(widths, self._muted))
        return lines + [line for row in rows for line in row_lines(row, widths, self._muted, aligns)]

    def _more_rows(self, block: Block, width: int) -> list[Line]:
        """Draw later rows of a table in the column widths of its beginning."""
        header = "".join(block.context.splitlines(keepends=True)[:2])
        head = _tree(PARSER.parse(block.context, self._environment))
        more = _tree(PARSER.parse(header + block.source, self._environment))
        first, rows, _ = self._rows(head[0])
        widths = column_widths([*first, *rows], width)
        if not widths:
            return self.plain(block.source, width)
        _, rows, aligns = self._rows(more[0])
        return [line for row in rows for line in row_lines(row, widths, self._muted, aligns)]

    def _rows(self, table: _Node) -> tuple[list[TableRow], list[TableRow], list[str]]:
        """Return a table's header rows, its other rows, and the alignment of its columns."""
        bold = self.palette.style(self.palette.accent, bold=True)
        header: list[TableRow] = []
        rows: list[TableRow] = []
        aligns: list[str] = []
        for part in table.children:
            for row in part.children:
                style = bold if part.token.type == "thead_open" else self._base
                cells = [inline_lines(_inline(cell), style, self.palette) for cell in row.children]
                (header if part.token.type == "thead_open" else rows).append(cells)
                aligns = aligns or [_align(cell.token) for cell in row.children]
        return header, rows, aligns


def _inline(node: _Node) -> Sequence[Token]:
    return [token for child in node.children for token in child.token.children or ()]


def _align(token: Token) -> str:
    return str(token.attrGet("style") or "").removeprefix("text-align:")


def _apart(above: _Node, below: _Node, source: Sequence[str]) -> bool:
    """Return whether an empty line separates two blocks; next to a list, only if the source has one."""
    tight = below.token.type.endswith("list_open") or above.token.type.endswith("list_open")
    return not tight or _has_blank_above(below, source)


def _has_blank_above(below: _Node, source: Sequence[str]) -> bool:
    first = (below.token.map or (0, 0))[0]
    return 0 < first <= len(source) and not source[first - 1].strip(" \t>")


def column_widths(rows: Sequence[TableRow], width: int) -> list[int]:
    """Return the widths of columns whose rows fit `width` cells; empty if there are too many columns.

    `rows` may be only the beginning of a long table, so short columns get room for longer numbers.
    """
    columns = max((len(row) for row in rows), default=0)
    room = width - len(_BETWEEN) * (columns - 1)
    if not columns or room < columns * _MIN_COLUMN:
        return []
    natural = [max((_natural(row[at]) for row in rows if at < len(row)), default=1) for at in range(columns)]
    growth = _GROWTH if len(rows) > _LONG_TABLE else 0
    widths = [max(1, min(size + growth * (size <= _SHORT), _MAX_COLUMN)) for size in natural]
    over = sum(widths) - room
    while over > 0:
        # shrink the widest columns to the width of the next widest in one step
        widest = max(widths)
        tall = [at for at, size in enumerate(widths) if size == widest]
        below = max((size for size in widths if size < widest), default=_MIN_COLUMN)
        step = max(1, min(widest - below, over // len(tall)))
        for at in tall:
            taken = min(step, over)
            widths[at] -= taken
            over -= taken
    return widths


def row_lines(row: TableRow, widths: Sequence[int], border: Style, aligns: Sequence[str]) -> list[Line]:
    """Return the lines of one row of a table."""
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
    """Return the line between a table's header and its rows."""
    return Line((Segment("─┼─".join("─" * width for width in widths), border),))


def _natural(cell: Cell) -> int:
    return max((sum(cell_len(text) for text, _ in line) for line in cell), default=0)
