"""Wrapping: within the width, between words, and every character can be had back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len, get_character_cell_size
from rich.style import Style

from rolling_chat.tui.transcript import lines
from rolling_chat.tui.transcript.lines import Line, folded, framed, wrapped

STYLE = Style()
TEXTS = st.lists(
    st.sampled_from(
        ["a", "b", "é", "漢", "字", " ", "  ", "👍🏽", "👩‍👩‍👧", "a\u0301", "-", "word", "…", "’", "x" * 12]
    )
).map("".join)


def _joined(rows: list[Line]) -> str:
    return "".join(row.text + (row.joint or "") for row in rows)


@given(TEXTS, st.integers(2, 20))
def test_wrapped_rows_fit_and_join_to_the_text(text: str, width: int) -> None:
    rows = wrapped([(text, STYLE)], width)
    assert all(cell_len(row.drawn) <= width for row in rows)
    assert _joined(rows).rstrip(" ") == text.rstrip(" ")
    assert rows[-1].joint is None


@given(TEXTS, st.integers(2, 20))
def test_folded_rows_keep_every_character(text: str, width: int) -> None:
    rows = folded([(text, STYLE)], width)
    assert all(cell_len(row.drawn) <= width for row in rows)
    assert _joined(rows) == text


def test_words_are_kept_whole_where_they_fit() -> None:
    rows = wrapped([("the quick brown fox", STYLE)], 10)
    assert [row.drawn for row in rows] == ["the quick", "brown fox"]
    assert rows[0].joint == " "


def test_a_tab_is_drawn_as_spaces_and_taken_as_a_tab() -> None:
    (row,) = folded([("a\tb\t", STYLE)], 40)
    assert row.drawn == "a   b   "
    assert row.text == "a\tb\t"
    assert row.taken(2, 5) == "\tb"


@pytest.mark.parametrize("is_text", [True, False])
def test_what_stands_before_a_row_is_text_only_where_it_says_so(is_text: bool) -> None:
    rows = wrapped([("one two three", STYLE)], 8)
    first, rest = lines.Segment("• ", STYLE), lines.Segment("  ", STYLE)
    taken = _joined(framed(rows, first, rest, is_text=is_text))
    assert taken == ("• one two three" if is_text else "one two three")


def test_what_is_taken_for_one_cell_is_one_cell() -> None:
    plain = [chr(code) for code in range(0x20, 0x3000) if re.fullmatch(lines._ONE_CELL_EACH, chr(code))]
    assert len(plain) > 800
    assert all(get_character_cell_size(char) == 1 for char in plain)
