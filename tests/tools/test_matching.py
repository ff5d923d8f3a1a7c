"""Where the text of an edit is, and what the model is told where it is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.tools import ToolError
from rolling_chat.tools.file_text import read_file_text
from rolling_chat.tools.matching import find_spans

SOURCE = """\
def first():
    return 'one'


def second():
\treturn "two"  # two
"""


def _find(text: str, old: str, *, all_of_them: bool = False) -> list[tuple[int, int]]:
    return find_spans(read_file_text(text.encode(), "a"), old, "a.py", all_of_them=all_of_them)


def _refusal(text: str, old: str) -> str:
    with pytest.raises(ToolError) as caught:
        _find(text, old)
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_a_unique_text_is_found_over_any_line_end() -> None:
    assert _find(SOURCE, "return 'one'") == [(17, 29)]
    assert _find("a\r\nb\r\nc", "a\nb") == [(0, 3)]
    assert _find("a\nb\nc", "a\r\nb") == [(0, 3)]


def test_all_places_are_found_that_do_not_overlap() -> None:
    assert _find("aaaaa", "aa", all_of_them=True) == [(0, 2), (2, 4)]


def test_a_text_that_is_not_unique_is_refused_with_its_lines() -> None:
    assert _refusal("x = 1\ny = 2\nx = 1\n", "x = 1") == (
        "`old` is 2 times in a.py, at lines 1, 3: add lines around it to make it unique, or set `all`."
    )
    assert "at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 88 more" in _refusal("x\n" * 100, "x")


def test_places_that_overlap_are_not_unique() -> None:
    assert "`old` is 2 times" in _refusal("ababa", "aba")


@pytest.mark.parametrize(
    ("old", "said"),
    [
        ('    return "one"', "line 2, which differs in its quotation marks or dashes"),
        (
            "      return 'one'",
            "line 2, which differs in indentation: 4 spaces in the file, 6 spaces in `old`",
        ),
        ('    return "two"  # two', "line 6, which differs in indentation: 1 tab in the file, 4 spaces"),
        ('\treturn "two" # two', "line 6, which differs in white space"),
        ("def first():   \n    return 'one'", "line 1, which differs in blanks at the end of a line"),
        ("def First():\n    return 'one'", "line 1, which differs in case, quotation marks or white space"),
        ("def second():\n\treturn 'too'", "line 5, where the file has 'return \"two\"  # two' and line 2 of"),
        (SOURCE + "\n", "line 1, where the file ends sooner than `old`"),
        ("nothing of the kind", "and nothing in it is similar: read the file again"),
    ],
)
def test_the_nearest_place_is_named_with_what_differs(old: str, said: str) -> None:
    assert said in _refusal(SOURCE, old)


def test_an_empty_file_is_said_to_be_empty() -> None:
    assert _refusal("", "x") == "`old` is not in a.py: the file is empty."


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("a" * 400_000, "a" * 60_000 + "b"),
        ("ab" * 100_000, "ba" * 30_000 + "c"),
        ("}\n" * 200_000, "}\n" * 3_000 + "x"),
        ("x y z\n" * 50_000, "z y x"),
    ],
    ids=["one line", "alternating", "same lines", "same words"],
)
def test_a_near_miss_in_a_large_file_is_answered_without_comparing_all_of_it(text: str, old: str) -> None:
    assert "`old` is not in a.py" in _refusal(text, old)


@given(st.text("ab \t\n'\"\u2019\r", max_size=30), st.text("ab \t\n'\"\u2019\r", min_size=1, max_size=10))
def test_every_text_is_found_exactly_or_refused_in_one_line(text: str, old: str) -> None:
    file = read_file_text(text.encode(), "a")
    try:
        spans = find_spans(file, old, "a.py", all_of_them=True)
    except ToolError as error:
        refusal = str(error)
        assert old.replace("\r\n", "\n") not in file.text
        assert "\n" not in refusal
        return
    assert {file.text[start:end] for start, end in spans} == {old.replace("\r\n", "\n")}
