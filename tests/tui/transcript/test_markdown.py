"""Markdown as a person sees it, line by line."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from rolling_chat.tui.state.items import Item, Kind
from rolling_chat.tui.transcript.colors import Look, Palette
from rolling_chat.tui.transcript.lines import Line
from tests.support.transcripts import drawn_item

PALETTE = Palette()


def _lines(text: str, width: int = 42) -> list[Line]:
    pieces = drawn_item(Item("a", Kind.ASSISTANT, text), Look(width, PALETTE))
    return [line for piece in pieces for line in piece]


def _drawn(text: str, width: int = 42) -> list[str]:
    return [line.drawn[2:].rstrip() for line in _lines(text, width)]


def _style_of(text: str, word: str) -> object:
    return next(s.style for line in _lines(text) for s in line.segments if word in s.text)


def test_blocks_stand_apart_and_lines_of_the_source_stay_lines() -> None:
    assert _drawn("# Title\nfirst\nsecond\n\nthird") == ["Title", "", "first", "second", "", "third"]


def test_lists_are_indented_and_wrap_under_their_text() -> None:
    text = "1. an item that is long enough to wrap around\n   - nested\n2. two"
    assert _drawn(text, 30) == [
        "1. an item that is long",
        "   enough to wrap around",
        "   • nested",
        "2. two",
    ]


def test_a_loose_list_keeps_its_air() -> None:
    assert _drawn("- a\n\n- b") == ["• a", "", "• b"]


def test_quotes_carry_a_bar_on_every_row() -> None:
    assert _drawn("> a quote\n> - with a list\n>\n> > and another") == [
        "▌ a quote", "▌ • with a list", "▌", "▌ ▌ and another",
    ]  # fmt: skip


def test_a_table_has_columns_that_fit_and_cells_that_wrap() -> None:
    text = "| Name | Count |\n|:--|--:|\n| one | 1 |\n| a long name that wraps here and there | 22 |"
    drawn = _drawn(text, 32)
    assert drawn[0].startswith("Name")
    assert "┼" in drawn[1]
    assert drawn[2].startswith("one")
    assert drawn[2].endswith("    1")
    assert len(drawn) == 5
    assert all(line.index("│") == drawn[0].index("│") for line in (drawn[0], *drawn[2:]))


def test_rows_far_down_a_long_table_keep_the_columns_of_its_beginning() -> None:
    rows = "".join(f"| {n} | value {n} |\n" for n in range(60))
    drawn = _drawn(f"| n | what |\n|---|---|\n{rows}")
    assert len(drawn) == 62
    assert len({line.index("│") for line in drawn if "│" in line}) == 1


@pytest.mark.parametrize("columns", [3, 7, 12])
def test_columns_that_are_all_too_wide_share_the_width(columns: int) -> None:
    cells = " | ".join("x" * 40 for _ in range(columns))
    rule = _drawn(f"| {cells} |\n|{'---|' * columns}", 80)
    widths = {len(part) for part in next(line for line in rule if "┼" in line).split("─┼─")}
    assert max(widths) - min(widths) <= 1


@pytest.mark.parametrize("width", [80, 160])
def test_a_long_table_has_room_for_the_numbers_that_come_further_down(width: int) -> None:
    text = "and a description that is long enough to be wrapped at eighty columns, " * 2
    rows = "\n".join(f"| {n} | name_{n} | {37 * n} | {text} |" for n in range(1_200))
    lines = _drawn(f"| n | name | value | text |\n|--:|---|--:|---|\n{rows}\n\nend", width)
    for number in (9, 10, 99, 100, 999, 1_000, 1_199):
        assert any(f" name_{number} " in line and f" {37 * number} " in line for line in lines)


def test_a_table_with_too_many_columns_is_shown_as_it_stands() -> None:
    text = "|" + " a |" * 30 + "\n|" + "---|" * 30
    assert "".join(_drawn(text, 40)).count("a") == 30


def test_code_is_colored_on_a_ground_of_its_own() -> None:
    text = "```python\ndef f():\n    return 1\n```"
    assert [line.text for line in _lines(text)] == ["def f():", "    return 1"]
    assert _style_of(text, "def").bgcolor.name == PALETTE.raised
    assert _style_of(text, "def").color.name != PALETTE.text
    assert len({cell_len(line.drawn) for line in _lines(text)}) == 1


def test_code_in_a_language_that_nobody_knows_is_code() -> None:
    assert [line.text for line in _lines("```nonesuch\n<b>&amp;\n```")] == ["<b>&amp;"]


def test_a_string_over_many_pieces_keeps_its_color() -> None:
    inside = "\n".join(f"words {n}" for n in range(70))
    text = f'```python\nx = """\n{inside}\n"""\n```'
    assert _style_of(text, "words 1").color == _style_of(text, "words 60").color


def test_a_diff_in_a_fence_tells_what_came_from_what_went() -> None:
    text = "```diff\n-old\n+new\n```"
    assert _style_of(text, "-old").color.name == PALETTE.error
    assert _style_of(text, "+new").color.name == PALETTE.success


def test_emphasis_is_style_and_leaves_no_signs() -> None:
    text = "**bold** *it* ~~gone~~ `code`"
    assert _drawn(text) == ["bold it gone code"]
    assert _style_of(text, "bold").bold
    assert _style_of(text, "it").italic
    assert _style_of(text, "gone").strike
    assert _style_of(text, "code").bgcolor.name == PALETTE.raised


def test_a_link_shows_its_target_where_it_differs_and_is_none_to_the_terminal() -> None:
    assert _drawn("[docs](http://x.y) and <http://z.w>") == ["docs (http://x.y) and http://z.w"]
    style = _style_of("[docs](http://x.y)", "docs")
    assert style.meta == {"link": "http://x.y"}
    assert style.link is None


def test_a_definition_that_comes_later_makes_a_link_of_what_stands_above() -> None:
    assert _drawn("see [it]\n\n[it]: http://x.y")[0] == "see it (http://x.y)"


def test_what_is_nested_too_deep_is_still_shown() -> None:
    for sign in ("> ", "- "):
        for depth in (5, 30, 60, 150):
            assert "deep" in "".join(_drawn(sign * depth + "deep", 50))
