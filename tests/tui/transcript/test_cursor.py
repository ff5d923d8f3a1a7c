"""The reader's cursor: over rows, characters, words and messages, and its position when these change."""

from __future__ import annotations

import random

import pytest

from rolling_chat.tui.state.item_list import ItemList
from rolling_chat.tui.state.items import Item, Kind
from rolling_chat.tui.transcript.colors import Look, Palette
from rolling_chat.tui.transcript.cursor import Cursor
from rolling_chat.tui.transcript.document import Document
from rolling_chat.tui.transcript.layout import Position
from rolling_chat.tui.transcript.selection import Point, selected_text

ITEMS = (
    Item("u", Kind.USER, "the question"),
    Item("a", Kind.ASSISTANT, "日本語 and e\u0301 👩‍👩‍👧 words\n\nsecond part " + "long " * 30),
    Item(
        "t",
        Kind.TOOL,
        "read_file a.py",
        result="the first of its lines\nthe second, longer than what is below",
    ),
    Item("v", Kind.USER, "another"),
    Item("b", Kind.ASSISTANT, "the end"),
)


def _document(*items: Item, width: int = 40) -> Document:
    return Document(ItemList(items or ITEMS), Look(width, Palette()), clock=lambda: 0.0)


def test_it_goes_by_characters_and_never_into_the_middle_of_one() -> None:
    document = _document()
    cursor = Cursor(document, document.beginning(1))
    taken = []
    for _ in range(16):
        before = cursor.point
        cursor.along(1, "character")
        taken.append(selected_text(document, before, cursor.point))
    assert "".join(taken[:4]) == "日本語"
    assert "e\u0301" in taken
    assert "👩‍👩‍👧" in taken
    for _ in range(16):
        cursor.along(-1, "character")
    assert cursor.point == Cursor(document, document.beginning(1)).point


def test_it_goes_by_words_and_to_the_ends_and_over_them() -> None:
    document = _document()
    cursor = Cursor(document, document.beginning(0))
    begin = cursor.point
    cursor.along(1, "word")
    assert selected_text(document, begin, cursor.point) == "the"
    cursor.along(1, "edge")
    assert selected_text(document, begin, cursor.point) == "the question"
    cursor.along(1, "character")
    assert cursor.point.position > begin.position
    cursor.along(-1, "character")
    assert selected_text(document, begin, cursor.point) == "the question"


def test_it_goes_from_message_to_message() -> None:
    document = _document()
    cursor = Cursor(document, document.beginning(2))
    assert cursor.by_items(1, (Kind.USER,))
    assert cursor.item.id == "v"
    assert not cursor.by_items(1, (Kind.USER,))
    assert cursor.by_items(-1, (Kind.ASSISTANT,))
    cursor.by_rows(2)
    assert cursor.by_items(-1, (Kind.ASSISTANT,)), "first to the beginning of where it stands"
    assert cursor.point.position == document.beginning(1)


def test_it_stands_in_its_text_at_another_width_and_when_older_items_come_above() -> None:
    document = _document(width=60)
    cursor = Cursor(document, document.beginning(1))
    cursor.by_rows(4)
    source = cursor.source
    for width in (20, 33, 90, 60):
        document.set_look(Look(width, Palette()))
        cursor.look_changed()
        row = document.forward(cursor.point.position, 1).rows[0]
        assert row.line.at <= source
    document.items.prepend([Item(f"o{n}", Kind.USER, "older") for n in range(9)])
    cursor.find_again(document)
    assert cursor.item.id == "a"


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "not told"])
@pytest.mark.parametrize("seed", range(9))
def test_wherever_it_goes_it_stands_on_a_character_of_a_row(seed: int, *, is_told: bool) -> None:
    choose = random.Random(seed)
    document = _document(width=17)
    cursor = Cursor(document, document.first)
    changes = (
        lambda: document.turn(2),
        lambda: document.open_all(is_open=choose.choice((False, True))),
        lambda: document.set_look(Look(choose.choice((9, 17, 60)), Palette())),
    )
    moves = (
        lambda: cursor.by_rows(choose.choice((-9, -1, 1, 9))),
        *[lambda: cursor.along(choose.choice((-1, 1)), choose.choice(("character", "word", "edge")))] * 4,
        lambda: cursor.to(Position(2, 2, choose.randrange(4))),  # where there is something to fold
        lambda: cursor.to_edge(choose.choice((-1, 1))),
        lambda: cursor.by_items(choose.choice((-1, 1)), (Kind.USER, Kind.ASSISTANT)),
        lambda: cursor.to(Position(choose.randrange(-2, 9), choose.randrange(4), choose.randrange(9))),
    )
    for _ in range(400):
        if choose.random() < 0.3:
            choose.choice(changes)()
            if is_told:
                cursor.find_again(document)
        choose.choice(moves)()
        row = document.forward(cursor.point.position, 1).rows[0]
        assert row.position == cursor.point.position
        assert row.line.gutter <= cursor.point.column <= len(row.line.drawn)


def test_there_is_none_where_there_is_nothing() -> None:
    document = Document(ItemList(), Look(40, Palette()), clock=lambda: 0.0)
    cursor = Cursor(document, document.first)
    cursor.by_rows(1)
    cursor.along(1, "word")
    cursor.to_edge(1)
    cursor.find_again(document)
    assert cursor.point == Point(document.first, 0)


def test_what_is_folded_away_under_it_leaves_it_on_its_item() -> None:
    document = _document()
    document.open_all(is_open=True)
    cursor = Cursor(document, document.beginning(2))
    cursor.by_rows(2)
    cursor.along(1, "edge")
    document.open_all(is_open=False)
    cursor.find_again(document)
    assert cursor.item.id == "t"
    assert cursor.point.position == document.beginning(2)


@pytest.mark.parametrize("step", [-1, 1])
def test_it_moves_on_from_where_it_is_left_by_what_nobody_told_it_of(step: int) -> None:
    for how in ("character", "word", "edge", "rows"):
        document = _document()
        document.open_all(is_open=True)
        cursor = Cursor(document, document.beginning(2))
        cursor.by_rows(2)
        cursor.along(1, "edge")
        document.open_all(is_open=False)
        cursor.by_rows(step) if how == "rows" else cursor.along(step, how)
        row = document.forward(cursor.point.position, 1).rows[0]
        assert row.line.gutter <= cursor.point.column <= len(row.line.drawn)


def test_a_paint_takes_nothing_from_the_column_that_up_and_down_aim_at() -> None:
    long = "a line that goes on for more than forty cells of it"
    document = _document(Item("a", Kind.ASSISTANT, f"{long}\n\nab\n\n{long}"), width=80)
    cursor = Cursor(document, document.first)
    cursor.to_point(Point(document.first, 40))
    for _ in range(4):
        cursor.by_rows(1)
        cursor.find_again(document)
    assert cursor.point.column == 40
