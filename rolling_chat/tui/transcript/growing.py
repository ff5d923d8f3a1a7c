"""A paragraph that streams in, drawn from where it can still change.

What is drawn equals the whole paragraph drawn afresh: a part of it is settled only where no emphasis, code,
link or row that begins in it can end behind it.
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

_WORTH = 160  # characters that are settled at a time: to look for a place costs as much as to draw them
_MAY_OPEN = re.compile(r"(?<![^\W_])_+(?=\S)|_+(?=[^\w\s])|[*_]\Z|\*(?=\S)|`|~~")
_TAB = re.compile(r"\t|&#|&Tab;")  # its width hangs on all that stands before it


@dataclass(slots=True)
class Growing:
    """The paragraph at the end of an answer that streams in, with the lines of it that cannot change."""

    _key: tuple[object, ...] = ()
    _settled: str = ""
    _lines: list[Line] = field(default_factory=list)
    _begun: StyledLine = field(default_factory=list)  # the row that the settled text ends in
    _drawn: int = 0  # characters of the settled lines, as they were drawn

    def lines(
        self, block: Block, width: int, palette: Palette, links: Links, front: Segment
    ) -> list[Line] | None:
        """Return the lines of a block behind `front`; None if it is no plain paragraph."""
        try:
            text = _paragraph(block, links)
            return (
                None if text is None else self._drawn_lines(text, _Desk(block, width, palette, links, front))
            )
        except Exception:  # a layout that cannot be made must not hide text
            _log.debug("a paragraph could not be drawn as it grows", exc_info=True)
            return None

    def _drawn_lines(self, text: str, desk: _Desk) -> list[Line] | None:
        key = (desk.block.kind, desk.block.start, desk.width, desk.palette, len(desk.links), desk.front)
        if key != self._key or not text.startswith(self._settled):
            self._key, self._settled, self._lines = key, "", []
            self._begun, self._drawn = [], 0
        parts = self._parts(self._settle(text, desk), desk)
        lines = [line for part in parts for line in wrapped(part, desk.width)]
        lines = [*self._lines, *desk.placed(lines, self._drawn)[0]]
        return lines if any(line.drawn.strip() for line in lines) else None

    def _settle(self, text: str, desk: _Desk) -> list[Token]:
        """Settle what can be settled, and return the tokens of the rest."""
        rest = text[len(self._settled) :]
        cut = _last_word(rest)
        if cut < _WORTH:
            return desk.tokens(rest)
        tokens = desk.tokens(rest[:cut])
        if _is_open(tokens):
            return desk.tokens(rest)
        *whole, last = self._parts(tokens, desk)
        rows, begun = wrapped_on(last, desk.width)
        placed, drawn = desk.placed(
            [*(line for part in whole for line in wrapped(part, desk.width)), *rows], self._drawn
        )
        if drawn > desk.limit:  # more was drawn than is written: where it stands hangs on what comes
            return desk.tokens(rest)
        self._lines += placed
        self._settled, self._begun, self._drawn = text[: len(self._settled) + cut], begun, drawn
        return desk.tokens(rest[cut:])

    def _parts(self, tokens: list[Token], desk: _Desk) -> list[StyledLine]:
        """Return the lines of the text that follows what is settled, with the row that is begun."""
        first, *others = inline_lines(tokens, desk.palette.style(desk.palette.text), desk.palette)
        begun = list(self._begun)
        is_text = bool(tokens) and tokens[0].type == "text"
        if is_text and begun and first and begun[-1][1] == first[0][1]:  # the settled part ends within it
            text, style = begun.pop()
            first = [(text + first[0][0], style), *first[1:]]
        return [[*begun, *first], *others]


@dataclass(frozen=True, slots=True)
class _Desk:
    """What a block is drawn with."""

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
        """Return lines with their front and index in the source; then the characters drawn with them."""
        placed: list[Line] = []
        for line in lines:
            placed.append(replace(line, at=self.block.start + min(drawn, self.limit)))
            drawn += len(line.text) + (1 if line.joint is None else len(line.joint))
        return framed(placed, self.front, self.front, is_text=False), drawn


def _paragraph(block: Block, links: Links) -> str | None:
    """Return the inline text of a block that is a single paragraph in no frame; None for any other."""
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
    """Return where the last word begins that a space stands before; 0 for none."""
    at = text.rfind(" ", 0, max(0, len(text) - 1)) + 1
    return at if at and text[at] not in " \n" else 0


def _is_open(tokens: list[Token]) -> bool:
    """Return whether anything in a text may still turn into markup by what follows it."""
    depth = 0
    for token in tokens:
        if token.type != "text":
            continue
        if _MAY_OPEN.search(token.content):
            return True
        for character in token.content:
            depth += (character == "[") - (character == "]" and depth > 0)
    return depth > 0
