"""Blocks: units of bounded size in which text is drawn, and where a long text is cut into them."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

Links: TypeAlias = dict[str, Any]  # markdown-it's `references`: by label, address and title
PIECE_CHARS = 2048
PIECE_LINES = 40
TABLE_ROWS = 20  # after this many rows a table's column widths are fixed
MAX_BLOCK_CHARS = 2 * PIECE_CHARS  # a longer block is cut
MAX_BLOCK_LINES = 4 * PIECE_LINES  # so is one with more lines: a line has a cost of its own
_WINDOW = 4096


class BlockKind(StrEnum):
    """How a block's source is to be interpreted."""

    MARKDOWN = "markdown"  # by the parser
    INLINE = "inline"  # as the middle of a paragraph
    CODE = "code"  # as code, uninterpreted
    ROWS = "rows"  # as rows of the table whose header is in `context`
    PLAIN = "plain"  # as plain text


@dataclass(frozen=True, slots=True)
class Frame:
    """A quote or list item that contains a block; `marker` is drawn before its first block."""

    marker: str  # "" is a quote's bar
    indent: int  # cells


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a text, or a part of an overlong block.

    `start` is its index in the text, in characters. `gap` asks for an empty line above it.
    `info` is a fence's language, `number` an ordered list item's number. `context` is earlier text that
    the drawing depends on: the code just above, the beginning of the table. `opens` counts the innermost
    frames whose first block this is. `joint` joins its last line to the next block's first where a line
    or paragraph was cut; None where a line ends.
    """

    kind: BlockKind
    source: str
    start: int
    gap: bool = False
    info: str = ""
    number: int | None = None
    context: str = ""
    frames: tuple[Frame, ...] = ()
    opens: int = 0
    joint: str | None = None


def is_long(source: str) -> bool:
    """Return whether a block is too long to be drawn as one."""
    return len(source) > MAX_BLOCK_CHARS or source.count("\n") > MAX_BLOCK_LINES


def first_lines(text: str, count: int, *, is_all: bool) -> tuple[str, bool]:
    """Return at most `count` lines of a text, and whether the text is complete with them."""
    lines = text.split("\n", count)
    few = text if len(lines) <= count else text[: -len(lines[-1]) or None]
    return few, is_all and len(few) == len(text)


def code_cut(code: str) -> int | None:
    """Return the index at which to cut code that is too long for one block; None if it is not."""
    many = code.count("\n") > PIECE_LINES
    if not many and len(code) <= PIECE_CHARS:
        return None
    at = code.rfind("\n", 0, PIECE_CHARS) + 1 or whole_character(code, PIECE_CHARS)
    lines = code[:at].split("\n", PIECE_LINES)
    return at - len(lines[-1]) if len(lines) > PIECE_LINES else at


def paragraph_cut(text: str) -> tuple[int, str | None]:
    """Return the index at which to cut a paragraph, and the white space dropped there.

    Cuts after a line, else a sentence, else a word. The white space is None at the end of a line.
    """
    lines = text[:PIECE_CHARS].split("\n", 2 * PIECE_LINES)
    if len(lines) > 2 * PIECE_LINES:
        return len(text[:PIECE_CHARS]) - len(lines[-1]), None
    for end in ("\n", ". ", " "):
        at = text.rfind(end, PIECE_CHARS // 2, PIECE_CHARS)
        if at >= 0:
            return (at + 1, None) if end == "\n" else (at + len(end) - 1, " ")
    return whole_character(text, PIECE_CHARS), ""


def whole_character(text: str, at: int) -> int:
    """Return the index at or before `at` that does not split a character from its combining marks."""
    if at >= len(text):
        return len(text)
    for place in range(at, max(1, at - 64), -1):
        here, above = text[place], text[place - 1]
        if not unicodedata.combining(here) and not _joins(here) and above != "\u200d":
            return place
    return at


def _joins(character: str) -> bool:
    return (
        character == "\u200d"
        or "\ufe00" <= character <= "\ufe0f"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )


def some_rows(lines: list[str], max_chars: int) -> list[str]:
    """Return the leading rows of a table that fit in one block; none if the first is too long for a table."""
    taken: list[str] = []
    for line in lines[:TABLE_ROWS]:
        max_chars -= len(line)
        if max_chars < 0 and (taken or len(line) > PIECE_CHARS):
            break
        taken.append(line)
    return taken


@dataclass
class PlainSplitter:
    """A splitter of plain text that arrives in parts; `settled` are the blocks that cannot change."""

    settled: list[Block] = field(default_factory=list)
    links: Links = field(default_factory=dict)
    _text: str = ""
    _at: int = 0
    _dropped: int = 0
    _ended: bool = False

    def feed(self, text: str) -> None:
        """Add text, which must already be safe for a terminal."""
        self._text, self._at, self._dropped = self._text[self._at :] + text, 0, self._dropped + self._at

    def end(self) -> None:
        """Declare the text complete."""
        self._ended = True

    def step(self) -> bool:
        """Settle one block; return False if none can be settled yet."""
        window = self._text[self._at : self._at + _WINDOW]
        at = code_cut(window)
        if at is None:
            if not self._ended or not window:
                return False
            at = len(window)
        self.settled.append(_piece(window[:at], self._dropped + self._at, goes_on=at < len(window)))
        self._at += at
        return True

    def tail(self) -> list[Block]:
        """Return the block of the unsettled text, if any."""
        rest = self._text[self._at :]
        return [_piece(rest, self._dropped + self._at, goes_on=False)] if rest else []


def _piece(text: str, start: int, *, goes_on: bool) -> Block:
    joint = "" if goes_on and not text.endswith("\n") else None
    return Block(BlockKind.PLAIN, text.removesuffix("\n") if goes_on else text, start, joint=joint)
