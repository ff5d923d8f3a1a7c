"""Where a splitter is in its text: between blocks, or in the middle of one that is cut."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rolling_chat.tui.transcript.blocks import Frame

if TYPE_CHECKING:
    from rolling_chat.tui.transcript.splitter import Splitter


@dataclass(frozen=True, slots=True)
class Normal:
    """Between blocks."""


@dataclass(frozen=True, slots=True)
class InParagraph:
    """In the middle of a paragraph that is cut."""


@dataclass(frozen=True, slots=True)
class InFence:
    """In a fence that is cut: what closes it, and the code above."""

    closing: re.Pattern[str]
    indent: int
    info: str
    above: str
    mid_line: bool


@dataclass(frozen=True, slots=True)
class InIndented:
    """In a line of indented code that is cut."""


@dataclass(frozen=True, slots=True)
class InTable:
    """In a table that is cut: its header and first rows, as they were drawn."""

    head: str


@dataclass(frozen=True, slots=True)
class Inside:
    """In a long quote or list item, whose text without its prefix goes to a splitter of its own."""

    inner: Splitter
    frame: Frame
    is_first_line: bool
    mid_line: bool


Mode: TypeAlias = Normal | InParagraph | InFence | InIndented | InTable | Inside


@dataclass(frozen=True, slots=True)
class ListState:
    """A list that goes on at `at`: the number of its next item, and whether a blank line is above it."""

    at: int
    number: int | None
    is_loose: bool
