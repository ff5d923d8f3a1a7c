"""Incremental drawing of a paragraph that streams in: only the part that can still change is redrawn.

The lines equal those of the whole paragraph drawn afresh: a part is settled only if no emphasis, code, link
or row that begins in it can end after it.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rolling_chat.tui.transcript.blocks import Block, BlockKind, Links
from rolling_chat.tui.transcript.lines import Line, StyledLine, framed, wrapped, wrapped_on
from rolling_chat.tui.transcript.markdown_syntax import PARSER, paragraph_in
from rolling_chat.tui.transcript.spans import inline_lines

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.segment import Segment

    from rolling_chat.tui.transcript.colors import Palette

_log = logging.getLogger("rolling_chat.tui")

_MIN_SETTLED = 160  # characters settled at a time: looking for a cut costs as much as drawing that many
_MAY_OPEN = re.compile(r"(?<![^\W_])_+(?=\S)|_+(?=[^\w\s])|[*_]\Z|\*(?=\S)|`|~~")
_TAB = re.compile(r"\t|&#|&Tab;")  # its width depends on everything before it


@dataclass(slots=True)
class Growing:
    """The last paragraph of an answer that streams in, with its lines that can no longer change."""

    _key: tuple[object, ...] = ()
    _settled: str = ""
    _lines: list[Line] = field(default_factory=list)
    _open_row: StyledLine = field(default_factory=list)  # the unfinished row at the end of the settled text
    _drawn: int = 0  # drawn characters of the settled lines

    def lines(
        self, block: Block, width: int, palette: Palette, links: Links, front: Segment
    ) -> list[Line] | None:
        """Return the lines of a block, each after `front`; None if it is not a plain paragraph."""
        try:
            text = _paragraph(block, links)
            return (
                None
                if text is None
                else self._drawn_lines(text, _BlockContext(block, width, palette, links, front))
            )
        except Exception:  # a layout that cannot be made must not hide text
            _log.debug("a paragraph could not be drawn as it grows", exc_info=True)
            return None

    def _drawn_lines(self, text: str, context: _BlockContext) -> list[Line] | None:
        key = (
            context.block.kind,
            context.block.start,
            context.width,
            context.palette,
            len(context.links),
            context.front,
        )
        if key != self._key or not text.startswith(self._settled):
            self._key, self._settled, self._lines = key, "", []
            self._open_row, self._drawn = [], 0
        parts = self._parts(self._settle(text, context), context)
        lines = [line for part in parts for line in wrapped(part, context.width)]
        lines = [*self._lines, *context.placed(lines, self._drawn)[0]]
        return lines if any(line.drawn.strip() for line in lines) else None

    def _settle(self, text: str, context: _BlockContext) -> list[Token]:
        """Settle as much text as possible, and return the tokens of the rest."""
        rest = text[len(self._settled) :]
        cut = _last_word(rest)
        if cut < _MIN_SETTLED:
            return context.tokens(rest)
        tokens = context.tokens(rest[:cut])
        if _is_open(tokens):
            return context.tokens(rest)
        *whole, last = self._parts(tokens, context)
        rows, begun = wrapped_on(last, context.width)
        placed, drawn = context.placed(
            [*(line for part in whole for line in wrapped(part, context.width)), *rows], self._drawn
        )
        if drawn > context.limit:  # more was drawn than the source has: its position depends on later text
            return context.tokens(rest)
        self._lines += placed
        self._settled, self._open_row, self._drawn = text[: len(self._settled) + cut], begun, drawn
        return context.tokens(rest[cut:])

    def _parts(self, tokens: list[Token], context: _BlockContext) -> list[StyledLine]:
        """Return the lines of the text after the settled part, starting with its unfinished row."""
        first, *others = inline_lines(tokens, context.palette.style(context.palette.text), context.palette)
        begun = list(self._open_row)
        is_text = bool(tokens) and tokens[0].type == "text"
        if is_text and begun and first and begun[-1][1] == first[0][1]:  # the settled part ends within it
            text, style = begun.pop()
            first = [(text + first[0][0], style), *first[1:]]
        return [[*begun, *first], *others]


@dataclass(frozen=True, slots=True)
class _BlockContext:
    """The parameters for drawing a block."""

    block: Block
    width: int
    palette: Palette
    links: Links
    front: Segment

    @property
    def limit(self) -> int:
        """The last index in the block's source."""
        return max(0, len(self.block.source) - 1)

    def tokens(self, text: str) -> list[Token]:
        """Return the tokens of inline text."""
        (inline,) = PARSER.parseInline(text, {"references": dict(self.links)})
        return inline.children or []

    def placed(self, lines: list[Line], drawn: int) -> tuple[list[Line], int]:
        """Return the lines with front and source index added, and the number of characters drawn so far."""
        placed: list[Line] = []
        for line in lines:
            placed.append(replace(line, at=self.block.start + min(drawn, self.limit)))
            drawn += len(line.text) + (1 if line.joint is None else len(line.joint))
        return framed(placed, self.front, self.front, is_text=False), drawn


def _paragraph(block: Block, links: Links) -> str | None:
    """Return the inline text of a block that is one paragraph without frames; None for any other block."""
    if block.frames or block.joint is not None or block.number is not None or _TAB.search(block.source):
        return None
    match block.kind:
        case BlockKind.INLINE:
            return block.source
        case BlockKind.MARKDOWN:
            return paragraph_in(block.source, {"references": dict(links)})
        case _:
            return None


def _last_word(text: str) -> int:
    """Return where the last word preceded by a space begins; 0 if there is none."""
    at = text.rfind(" ", 0, max(0, len(text) - 1)) + 1
    return at if at and text[at] not in " \n" else 0


def _is_open(tokens: list[Token]) -> bool:
    """Return whether later text may still turn something in these tokens into markup."""
    depth = 0
    for token in tokens:
        if token.type != "text":
            continue
        if _MAY_OPEN.search(token.content):
            return True
        for character in token.content:
            depth += (character == "[") - (character == "]" and depth > 0)
    return depth > 0
