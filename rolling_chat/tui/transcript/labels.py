"""Link labels, looked for no longer than a block can afford.

markdown-it looks for the end of a label from every opening bracket, to the end of the text where there
is none: a paragraph of brackets takes time by the square of its length.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from markdown_it import helpers

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

# Characters looked through in a block before its brackets are taken for what they are. A block has some
# 4,000 at most, and a real link is as long as its label.
_MOST = 20_000
_LOOKED_THROUGH = "label_characters"


def bound_labels(parser: MarkdownIt) -> MarkdownIt:
    """Have `parser` look for labels with `_bounded`; returns it."""
    bounded: Any = SimpleNamespace(**{**vars(helpers), "parseLinkLabel": _bounded})
    parser.helpers = bounded
    return parser


def _bounded(state: StateInline, start: int, no_links_within: bool = False) -> int:
    """The end of the label that begins at `start`; -1 for none, or when too much was looked through."""
    spent: int = state.env.get(_LOOKED_THROUGH, 0)
    if spent > _MOST:
        return -1
    end = helpers.parseLinkLabel(state, start, no_links_within)
    spent = state.env.get(_LOOKED_THROUGH, 0)  # labels within it were looked for meanwhile
    state.env[_LOOKED_THROUGH] = spent + (end if end >= 0 else state.posMax) - start
    return end
