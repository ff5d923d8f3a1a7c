"""What is selected is the text: wrapped rows joined, gutters left out, code as it was written."""

from __future__ import annotations

import pytest

from rolling_chat.tui.transcript.document import Document, ItemFacts, Place
from rolling_chat.tui.transcript.items import Item, Kind
from rolling_chat.tui.transcript.listing import ItemList
from rolling_chat.tui.transcript.palette import Palette
from rolling_chat.tui.transcript.render import Look
from rolling_chat.tui.transcript.selection import Point, key_of, line_at, place_of_key, selected_text, word_at

CODE = "def f(x):\n\tif x:\n\t\treturn '" + "long " * 30 + "'\n\n\treturn None"


def _document(*items: Item, width: int = 40) -> Document:
    document = Document(ItemList(items), Look(width, Palette()), lambda _: ItemFacts())
    document.sync()
    return document


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
    first, last = Point(rows[0].place, 6), Point(rows[-1].place, 5)
    assert selected_text(document, first, last) == "question\n\nthe"


def test_keys_of_places_grow_downwards_and_lead_back() -> None:
    places = [
        Place(-3, 9, 9),
        Place(-1),
        Place(0),
        Place(0, 0, 7),
        Place(0, 1),
        Place(12, 4000, 500),
        Place(13),
    ]
    keys = [key_of(place) for place in places]
    assert keys == sorted(keys)
    assert [place_of_key(key) for key in keys] == places


def test_a_word_and_a_line_are_found_around_a_place() -> None:
    document = _document(Item("a", Kind.ASSISTANT, "see src/lexer.py there " + "and on " * 12))
    rows = document.forward(document.first, 9).rows
    start, end = word_at(rows[0], 8)
    assert rows[0].line.drawn[start:end] == "src/lexer.py"
    first, last = line_at(document, rows[1])
    assert selected_text(document, first, last).startswith("see src/lexer.py there and on")
    assert selected_text(document, first, last).count("and on") == 12
