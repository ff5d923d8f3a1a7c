"""Top-level blocks of a Markdown text, as its parser finds them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from markdown_it.token import Token


@dataclass(frozen=True, slots=True)
class Top:
    """A top-level block as the parser found it, with the places of its items where it is a list."""

    token: Token
    begin: int
    end: int
    items: tuple[tuple[int, int], ...] = ()


def _block_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


_PARSER = _block_parser()


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
    for token in _PARSER.parse(text, environment):
        if token.level == 1 and token.type == "list_item_open":
            items.append(places(token))
        elif token.level == 0 and token.nesting >= 0 and token.map:
            tops.append(Top(token, *places(token)))
        elif token.level == 0 and token.nesting < 0 and items:
            tops[-1] = replace(tops[-1], items=tuple(items))
            items = []
    return tops
