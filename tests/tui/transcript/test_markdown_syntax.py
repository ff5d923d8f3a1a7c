"""Labels are looked for within bounds, and found as by the parser alone in what people write."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt, helpers

from rolling_chat.tui.transcript.markdown_syntax import bound_labels

PIECES = st.sampled_from(
    ["[", "]", "(", ")", "![", "](", "[a](b)", "[a][r]", "[1]", "`[`", "\\[", "<b>", "word ", "[x](<y> 'z')"]
)


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False})


@given(st.lists(PIECES, max_size=60).map("".join))
def test_in_a_paragraph_the_same_links_are_found(text: str) -> None:
    plain, bounded = _parser(), bound_labels(_parser())
    references: dict[str, Any] = {"references": {"R": {"href": "http://r", "title": ""}}}
    assert bounded.parseInline(text, {**references}) == plain.parseInline(text, {**references})


@pytest.mark.parametrize(
    "text",
    ["[" * 4_000, "[a](" * 1_000, "![[" * 1_300, "<![CDATA[ " * 400],
    ids=["brackets", "links", "images", "sections"],
)
def test_brackets_without_end_are_not_looked_through_again_and_again(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0
    parse = helpers.parseLinkLabel

    def counting(state: Any, start: int, no_links_within: bool = False) -> int:
        nonlocal looked
        end = parse(state, start, no_links_within)
        looked += (end if end >= 0 else len(text)) - start
        return end

    monkeypatch.setattr(helpers, "parseLinkLabel", counting)
    bound_labels(_parser()).parseInline(text, {})
    # as deep as labels may stand in each other (20) they are begun before any has ended
    assert 0 < looked < 40 * len(text), "the square of its length is some 2,000 times as much"


def test_a_link_after_two_hundred_citations_is_one() -> None:
    text = " ".join(f"as in [{number}]" for number in range(200)) + " and [here](http://x.y)"
    (inline,) = bound_labels(_parser()).parseInline(text, {})
    assert [token.attrGet("href") for token in inline.children or () if token.type == "link_open"] == [
        "http://x.y"
    ]
