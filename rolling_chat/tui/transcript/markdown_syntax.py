"""Markdown syntax: parsers, top-level blocks, line prefixes, and the splitter's modes inside a cut block."""

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

MAX_NESTING = 40  # twenty nested quotes or lists; the parser drops anything deeper

# Characters searched for labels in a block; after that, its brackets are plain text. A block has some 4,000
# characters at most, and searching a real label costs only its own length.
_MAX_LABEL_CHARS = 20_000
_LABEL_CHARS = "label_characters"


def bound_labels(parser: MarkdownIt) -> MarkdownIt:
    """Limit how much text `parser` searches for link labels, and return it.

    markdown-it searches for the end of a label from every opening bracket, if need be to the end of the
    text: a paragraph of brackets takes quadratic time.
    """
    bounded: Any = SimpleNamespace(**{**vars(helpers), "parseLinkLabel": _bounded})
    parser.helpers = bounded
    return parser


def _bounded(state: StateInline, start: int, no_links_within: bool = False) -> int:
    """Return the end of the label that begins at `start`; -1 if there is none or the limit is used up."""
    spent: int = state.env.get(_LABEL_CHARS, 0)
    if spent > _MAX_LABEL_CHARS:
        return -1
    end = helpers.parseLinkLabel(state, start, no_links_within)
    spent = state.env.get(_LABEL_CHARS, 0)  # nested labels were searched too
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
"""The parser of a whole block, including links and emphasis."""


def paragraph_in(text: str, environment: dict[str, Any]) -> str | None:
    """Return the inline text of Markdown that is a single paragraph; None for anything else."""
    tokens = _BLOCK_PARSER.parse(text, environment)
    return tokens[1].content if len(tokens) == 3 and tokens[0].type == "paragraph_open" else None


@dataclass(frozen=True, slots=True)
class Top:
    """A top-level block found by the parser, with the positions of its items if it is a list."""

    token: Token
    begin: int
    end: int
    items: tuple[tuple[int, int], ...] = ()


def first_number(token: Token) -> int | None:
    """Return the first number of a numbered list; None for a bulleted list."""
    if token.type != "ordered_list_open":
        return None
    start = token.attrGet("start")
    return 1 if start is None else int(start)


def find_tops(prefix: str, known: str, environment: dict[str, Any]) -> list[Top]:
    """Parse Markdown and return its top-level blocks; positions count from `known`, after `prefix`."""
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
    """Return the number of the next list item; None for a bulleted list."""
    return None if number is None else number + 1


def closing_of(markup: str) -> re.Pattern[str]:
    """Return a pattern for the line that closes a fence opened by `markup`."""
    return re.compile(rf"^ {{0,3}}{re.escape(markup[0])}{{{len(markup)},}}[ \t]*$", re.MULTILINE)


def dedented(code: str, indent: int) -> str:
    """Return code without the indentation of its block."""
    return re.sub(rf"^ {{0,{indent}}}", "", code, flags=re.MULTILINE) if indent else code


def item_indent(item: str) -> int:
    """Return how far the text of a list item is indented, in characters."""
    found = _MARKER.match(item)
    return len(found[0]) if found else 2


def unframed(line: str, frame: Frame, *, is_first: bool) -> str | None:
    """Return a line without its quote or list prefix; None if it does not belong to the quote or item."""
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
    """The splitter's mode between blocks."""


@dataclass(frozen=True, slots=True)
class InParagraph:
    """The splitter's mode inside a paragraph that was cut."""


@dataclass(frozen=True, slots=True)
class InFence:
    """The splitter's mode inside a code fence that was cut: its closing line, and the code above."""

    closing: re.Pattern[str]
    indent: int
    info: str
    above: str
    mid_line: bool


@dataclass(frozen=True, slots=True)
class InIndented:
    """The splitter's mode inside a line of indented code that was cut."""


@dataclass(frozen=True, slots=True)
class InTable:
    """The splitter's mode inside a table that was cut: `head` is its header and first rows."""

    head: str


@dataclass(frozen=True, slots=True)
class ListState:
    """The splitter's mode between list items: the next item's index and number."""

    at: int
    number: int | None
    is_loose: bool
