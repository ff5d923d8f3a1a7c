"""Markdown's syntax: its parsers, top-level blocks, prefixes of lines, and blocks that are cut."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt, helpers

from rolling_chat.tui.transcript.blocks import Frame

if TYPE_CHECKING:
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_QUOTED = re.compile(r" {0,3}> ?")
_MARKER = re.compile(r"( {0,3})([-+*]|\d{1,9}[.)])( {1,4}(?! )| |\t|(?=\n|\Z))")

MAX_NESTING = 40  # twenty quotes or lists within each other; the parser drops what is nested deeper

# Characters searched for labels in a block before its brackets are taken for what they are. A block has
# some 4,000 at most, and a real link is as long as its label.
_MAX_LABEL_CHARS = 20_000
_LABEL_CHARS = "label_characters"


def bound_labels(parser: MarkdownIt) -> MarkdownIt:
    """Have `parser` search for link labels no longer than a block can afford; returns it.

    markdown-it searches for the end of a label from every opening bracket, to the end of the text where
    there is none: a paragraph of brackets takes time by the square of its length.
    """
    bounded: Any = SimpleNamespace(**{**vars(helpers), "parseLinkLabel": _bounded})
    parser.helpers = bounded
    return parser


def _bounded(state: StateInline, start: int, no_links_within: bool = False) -> int:
    """Find the end of the label that begins at `start`; -1 for none, or when too much was searched."""
    spent: int = state.env.get(_LABEL_CHARS, 0)
    if spent > _MAX_LABEL_CHARS:
        return -1
    end = helpers.parseLinkLabel(state, start, no_links_within)
    spent = state.env.get(_LABEL_CHARS, 0)  # labels within it were searched for meanwhile
    state.env[_LABEL_CHARS] = spent + (end if end >= 0 else state.posMax) - start
    return end


def _block_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _whole_parser() -> MarkdownIt:
    parser = bound_labels(MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING}))
    return parser.enable(["strikethrough", "table"])


_BLOCK_PARSER = _block_parser()
PARSER = _whole_parser()
"""Reads what one block holds, links and emphasis included."""


@dataclass(frozen=True, slots=True)
class Top:
    """A top-level block as the parser found it, with the places of its items where it is a list."""

    token: Token
    begin: int
    end: int
    items: tuple[tuple[int, int], ...] = ()


def first_number(token: Token) -> int | None:
    """What a numbered list begins with; None for a list of points."""
    if token.type != "ordered_list_open":
        return None
    start = token.attrGet("start")
    return 1 if start is None else int(start)


def find_tops(prefix: str, known: str, environment: dict[str, Any]) -> list[Top]:
    """The top-level blocks of `known`, which goes on after `prefix`; places are in `known`."""
    text = prefix + known
    starts = [0]
    starts += [match.end() for match in re.finditer("\n", text)]
    starts.append(len(text))

    def places(token: Token) -> tuple[int, int]:
        first, last = token.map or (0, 0)
        begin, end = (starts[min(row, len(starts) - 1)] - len(prefix) for row in (first, last))
        return max(0, begin), max(0, end)

    tops: list[Top] = []
    items: list[tuple[int, int]] = []
    for token in _BLOCK_PARSER.parse(text, environment):
        if token.level == 1 and token.type == "list_item_open":
            items.append(places(token))
        elif token.level == 0 and token.nesting >= 0 and token.map:
            tops.append(Top(token, *places(token)))
        elif token.level == 0 and token.nesting < 0 and items:
            tops[-1] = replace(tops[-1], items=tuple(items))
            items = []
    return tops


def after(number: int | None) -> int | None:
    """The number of the item after this one; a list without numbers has none."""
    return None if number is None else number + 1


def closing_of(markup: str) -> re.Pattern[str]:
    """What closes a fence that was opened by `markup`."""
    return re.compile(rf"^ {{0,3}}{re.escape(markup[0])}{{{len(markup)},}}[ \t]*$", re.MULTILINE)


def dedented(code: str, indent: int) -> str:
    """Code without the indentation of its block."""
    return re.sub(rf"^ {{0,{indent}}}", "", code, flags=re.MULTILINE) if indent else code


def item_indent(item: str) -> int:
    """How far the text of a list item is indented, in characters."""
    found = _MARKER.match(item)
    return len(found[0]) if found else 2


def unframed(line: str, frame: Frame, *, is_first: bool) -> str | None:
    """A line without what makes it part of a quote or an item; None where it is none."""
    if not frame.marker:
        found = _QUOTED.match(line)
        return line[found.end() :] if found and ">" in found[0] else None
    if is_first:
        found = _MARKER.match(line)
        return line[found.end() :] if found else line
    if not line.strip():
        return "\n" if line.endswith("\n") else ""
    shown = line.expandtabs(4) if line[0] in "\t " and "\t" in line[: frame.indent] else line
    return shown[frame.indent :] if not shown[: frame.indent].strip() else None


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
class ListState:
    """A list that goes on at `at`: the number of its next item, and whether a blank line is above it."""

    at: int
    number: int | None
    is_loose: bool
