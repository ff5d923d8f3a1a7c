"""A text is found in the source of items, and its position among their rows."""

from __future__ import annotations

import pytest

from rolling_chat.text import visible
from rolling_chat.tui.state.item_list import ItemList
from rolling_chat.tui.state.items import Item, Kind
from rolling_chat.tui.transcript.colors import Look, Palette
from rolling_chat.tui.transcript.document import Document
from rolling_chat.tui.transcript.finding import (
    Found,
    body_begins,
    hit_point,
    marks_in,
    needle,
    offsets_in,
    searched,
    windows,
)
from rolling_chat.tui.transcript.layout import Position


def _document(*items: Item, width: int = 40) -> Document:
    document = Document(ItemList(items), Look(width, Palette()), clock=lambda: 0.0)
    document.open_all(is_open=True)
    return document


def _hits(item: Item, words: str) -> list[int]:
    pattern, text = needle(words), searched(item)
    assert pattern is not None
    return [at for begin, end in windows(text) for at in offsets_in(text, pattern, begin, end)]


@pytest.mark.parametrize(
    ("words", "text", "count"),
    [
        ("Lexer", "a lexer, LEXER", 2),
        ("a.*(b", "a.*(b and axx(b", 1),
        ("[x]", "[x] x", 1),
        ("日本", "日本語 日本", 2),
        ("e\u0301", "caf\u0065\u0301", 1),
        ("two words", "two\nwords, **two** words", 2),
        ("\\d", "1 \\d", 1),
        ("x", "x" * 200_000, 200_000),
        (" x", " x  x\n_x", 3),
        ("x ", "x x* x", 2),
        ("a * b", "a * b, **a** * b", 2),
        ("_ b", "_ b, __ *b*", 2),
        ("border", "y" * 65_533 + "border" + "y" * 99_999, 1),
    ],
)
def test_a_text_is_found_as_it_stands_whatever_its_case(words: str, text: str, count: int) -> None:
    assert len(_hits(Item("a", Kind.ASSISTANT, text), words)) == count


@pytest.mark.parametrize("words", ["", "  ", "\t"])
def test_nothing_is_found_by_nothing(words: str) -> None:
    assert needle(words) is None


@pytest.mark.parametrize("width", [9, 20, 44, 120])
@pytest.mark.parametrize(
    "item",
    [
        Item("u", Kind.USER, "a needle\n\nand one more needle " * 9),
        Item(
            "a", Kind.ASSISTANT, "# needle\n\n- a **needle** in\n- a needle\n\n```py\nneedle = 1\n```\n\n" * 6
        ),
        Item("a", Kind.ASSISTANT, "日本needle語 \u202e needle\r\nneedle\x1b needle " * 9),
        Item("t", Kind.TOOL, "read_file needle", result="no\nneedle\n" * 90),
        Item("t", Kind.TOOL, "run needle " + "x" * 80, result="no\nneedle\n" * 90),
        Item("r", Kind.REASONING, "needle, needle\nneedle"),
    ],
    ids=lambda item: item.kind + item.text[:9].strip(),
)
def test_every_hit_has_a_place_of_its_own_and_they_go_down(item: Item, width: int) -> None:
    document = _document(item, width=width)
    pattern, hits, begins = needle("needle"), _hits(item, "needle"), body_begins(item)
    assert pattern is not None
    points = []
    for nth, offset in enumerate(hits):
        text = searched(item)
        body = len(visible(text[begins:offset], tabs=True)) if offset >= begins else None
        points.append(
            hit_point(document, 0, pattern, body, [offset - other for other in hits[:nth] if other < offset])
        )
    assert len(set(points)) == len(hits)
    assert points == sorted(points, key=lambda point: (point.position, point.column))
    for point in points:
        rows = document.forward(point.position, 4).rows
        marks = [mark for row in marks_in(document, rows, Found(pattern, current=point)) for mark in row]
        current = next(mark for mark in marks if mark.is_current)
        assert current.start == max(point.column, rows[0].line.gutter)


def test_a_hit_that_is_wrapped_is_marked_in_both_rows() -> None:
    document = _document(Item("a", Kind.ASSISTANT, "word " * 5 + "two parts of it"), width=32)
    rows = document.forward(document.first, 5).rows
    pattern = needle("two parts")
    marks = marks_in(document, rows, Found(pattern))
    taken = [row.line.drawn[m.start : m.end] for row, ms in zip(rows, marks, strict=True) for m in ms]
    assert taken == ["two", "parts"]
    # also where its first row is above what is looked at
    assert marks_in(document, rows[1:], Found(pattern))[0] == marks[1]


def test_what_is_not_drawn_is_shown_by_its_row() -> None:
    document = _document(Item("a", Kind.ASSISTANT, "above\n\n```python\ncode\n```"))
    pattern = needle("```python")
    assert pattern is not None
    point = hit_point(document, 0, pattern, 7, [])
    assert point.column == -1
    rows = document.forward(Position(0), 9).rows
    marks = marks_in(document, rows, Found(pattern, current=point))
    assert [mark.is_current for row in marks for mark in row] == [True]


@pytest.mark.parametrize(
    ("words", "text"),
    [(" x", "_"), ("_ _", "_"), ("* x", "*"), (" x", " "), ("~ ~ x", "~"), (" * x", " *"), ("x _ y", "_ ")],
)
def test_what_nearly_matches_everywhere_is_passed_over_in_one_go(words: str, text: str) -> None:
    """Were it looked at again from each of its positions, this would take hours."""
    pattern = needle(words)
    assert pattern is not None
    assert pattern.search(text * 2_000_000) is None
