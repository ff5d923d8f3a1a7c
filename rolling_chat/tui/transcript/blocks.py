"""Blocks: what a text is drawn in, each of bounded size."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

Links: TypeAlias = dict[str, Any]  # markdown-it's `references`: by label, address and title


class BlockKind(StrEnum):
    """How a block's source is to be read."""

    MARKDOWN = "markdown"  # by the parser
    INLINE = "inline"  # as the middle of a paragraph
    CODE = "code"  # not at all
    ROWS = "rows"  # as rows of the table whose beginning is the context
    PLAIN = "plain"  # not at all, and it is no code


@dataclass(frozen=True, slots=True)
class Frame:
    """A quote or a list item that a block stands in; `marker` is drawn before its first block."""

    marker: str  # "" is a quote's bar
    indent: int  # cells


@dataclass(frozen=True, slots=True)
class Block:
    """One block, or a piece of one that is too long.

    `start` is its place in the text, in characters. `gap` asks for an empty line above it.
    `info` is a fence's language; `number` the place of a list item that is counted. `context` is
    what the drawing hangs on beside the source: the code just above, the beginning of the table.
    `opens` counts the innermost frames whose first block this is. `joint` joins its last line to
    the next block's first where one line or paragraph is cut; None where a line ends.
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
