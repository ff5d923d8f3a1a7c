"""What is selected is the text: wrapped rows joined, gutters left out, code as it was written."""

from __future__ import annotations

from itertools import count

import pytest

from rolling_chat.tui.state.item_list import ItemList
from rolling_chat.tui.state.items import Item, Kind, Status
from rolling_chat.tui.transcript.colors import Look, Palette
from rolling_chat.tui.transcript.document import Document
from rolling_chat.tui.transcript.layout import Position, Row
from rolling_chat.tui.transcript.selection import (
    Point,
    key_of,
    line_at,
    position_of_key,
    selected_text,
    word_at,
)

CODE = "def f(x):\n\tif x:\n\t\treturn '" + "long " * 30 + "'\n\n\treturn None"


def _document(*items: Item, width: int = 40) -> Document:
    return Document(ItemList(items), Look(width, Palette()), clock=lambda: 0.0)


@pytest.mark.parametrize("width", [12, 40, 200])
def test_an_answer_is_copied_as_it_reads(width: int) -> None:
    text = "A long paragraph that wraps more than once.\n\n• not a list\n\n" + "word " * 60
    document = _document(Item("a", Kind.ASSISTANT, text), width=width)
    assert selected_text(document, None, None) == text.rstrip()


@pytest.mark.parametrize("width", [20, 44, 200])
def test_code_is_copied_as_in_the_source(width: int) -> None:
    document = _document(Item("a", Kind.ASSISTANT, f"Here:\n\n```python\n{CODE}\n```\n\nDone."), width=width)
    assert selected_text(document, None, None) == f"Here:\n\n{CODE}\n\nDone."


def test_a_selection_goes_over_messages_and_leaves_their_marks_out() -> None:
    document = _document(Item("u", Kind.USER, "the question"), Item("a", Kind.ASSISTANT, "the answer"))
    rows = document.forward(document.first, 9).rows
    first, last = Point(rows[0].position, 6), Point(rows[-1].position, 5)
    assert selected_text(document, first, last) == "question\n\nthe"


def test_keys_of_places_grow_downwards_and_lead_back() -> None:
    positions = [
        Position(-3, 9, 9),
        Position(-1),
        Position(0),
        Position(0, 0, 7),
        Position(0, 1),
        Position(12, 4000, 500),
        Position(13),
    ]
    keys = [key_of(position) for position in positions]
    assert keys == sorted(keys)
    assert [position_of_key(key) for key in keys] == positions


def test_a_word_and_a_line_are_found_around_a_place() -> None:
    document = _document(Item("a", Kind.ASSISTANT, "see src/lexer.py there " + "and on " * 12))
    rows = document.forward(document.first, 9).rows
    start, end = word_at(rows[0], 8)
    assert rows[0].line.drawn[start:end] == "src/lexer.py"
    first, last = line_at(document, rows[1])
    assert selected_text(document, first, last).startswith("see src/lexer.py there and on")
    assert selected_text(document, first, last).count("and on") == 12


def _unhurried(*items: Item) -> Document:
    """A document by whose clock every text takes too long to be laid out at once."""
    seconds = count()
    return Document(ItemList(items), Look(80, Palette()), clock=lambda: float(next(seconds)))


@pytest.mark.parametrize("status", [Status.DONE, Status.CUT])
@pytest.mark.parametrize("text", ["part of it\n\n" * 500, "word " * 9_000, "```python\n" + "x = 1\n" * 900])
def test_all_is_taken_of_a_text_that_is_not_laid_out_yet(text: str, status: Status) -> None:
    items = (
        Item("u", Kind.USER, "FIRST"),
        Item("a", Kind.ASSISTANT, text, status),
        Item("v", Kind.USER, "LAST"),
    )
    document, quick = _unhurried(*items), _document(*items, width=80)
    assert not document.layout(1).is_whole
    while quick.layout(1).advance(60):
        pass
    rows = quick.forward(quick.first, 10**6).rows
    taken = selected_text(document, None, None)
    assert taken == selected_text(quick, Point(rows[0].position, 0), Point(rows[-1].position, 99))
    assert taken.startswith("FIRST\n")
    assert taken.endswith("\nLAST")
    assert sum(map(taken.count, ("part", "word", "x = 1"))) == sum(map(text.count, ("part", "word", "x = 1")))


def _first_row(document: Document) -> Row:
    """The first row as soon as there is one."""
    while not (rows := document.forward(document.first, 1).rows):
        document.advance(0, 1)
    assert not document.layout(0).is_whole
    return rows[0]


def test_a_line_is_taken_whole_that_is_not_laid_out_yet() -> None:
    document = _unhurried(Item("a", Kind.ASSISTANT, "word " * 9_000))
    first, last = line_at(document, _first_row(document))
    assert selected_text(document, first, last).count("word") == 9_000


def test_of_a_long_text_no_more_is_laid_out_than_is_taken() -> None:
    document = _unhurried(Item("a", Kind.ASSISTANT, "part of it\n\n" * 5_000))
    position = _first_row(document).position
    assert selected_text(document, Point(position, 0), Point(position, 6)) == "part"
    assert not document.layout(0).is_whole
