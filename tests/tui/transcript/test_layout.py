"""One item as pieces: what streams in is drawn as if it had been there at once, and no piece is large."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rolling_chat.tui.state.items import Item, Kind, Status
from rolling_chat.tui.transcript.colors import Look, Palette
from rolling_chat.tui.transcript.layout import Decorations, ItemLayout, LineCache
from tests.support.transcripts import drawn_item
from tests.tui.transcript.test_looks import ANSWER

AROUND = Decorations(gap=1)
LOOK = Look(60, Palette())
LONG = "".join(f"{ANSWER}\nPart {n} of it.\n\n" for n in range(40))
TEXTS = {
    "an answer": ANSWER + "\n- [x] done\n\n[ref]: http://x.y\n\nsee [ref] and\nmore\n" + ANSWER,
    "carriage returns": "one\r\ntwo\rthree\r\n\r\n```\r\ncode\r\n```\r\n",
    "half characters": "a \ud83d\udc4d b \udc4d c \ud83d",
}


def _layout(item: Item, cache: LineCache | None = None) -> ItemLayout:
    return ItemLayout(item, LOOK, cache or LineCache(), lambda: 0.0, is_open=True, decorations=AROUND)


def _lines(layout: ItemLayout) -> list[str]:
    return [line.drawn for at in range(len(layout.pieces)) for line in layout.lines(at)]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("kind", [Kind.ASSISTANT, Kind.USER, Kind.REASONING])
def test_every_prefix_is_drawn_as_if_it_had_been_there_at_once(name: str, kind: Kind) -> None:
    text = TEXTS[name]
    item = Item("a", kind, "", Status.LIVE)
    layout = _layout(item)
    for end in range(1, len(text) + 1, 7):
        item = replace(item, source=text[:end])
        layout.take(item, AROUND, is_open=True)
        fresh = [line.drawn for piece in drawn_item(item, LOOK, is_open=True, gap=1) for line in piece]
        assert _lines(layout) == fresh
    done = replace(item, source=text, status=Status.DONE)
    layout.take(done, AROUND, is_open=True)
    assert _lines(layout) == [
        line.drawn for piece in drawn_item(done, LOOK, is_open=True, gap=1) for line in piece
    ]


def test_what_settled_is_not_drawn_again_when_more_comes() -> None:
    item = Item("a", Kind.ASSISTANT, LONG, Status.LIVE)
    layout = _layout(item)
    _lines(layout)
    before = {id(layout.lines(at)) for at in range(len(layout.pieces))}
    layout.take(replace(item, source=item.text + " and more\n"), AROUND, is_open=True)
    drawn_anew = [at for at in range(len(layout.pieces)) if id(layout.lines(at)) not in before]
    assert len(drawn_anew) <= 4


def test_lines_that_nobody_looked_at_for_long_are_let_go_and_drawn_again() -> None:
    cache = LineCache(max_lines=50)
    layout = _layout(Item("a", Kind.ASSISTANT, LONG), cache)
    lines = _lines(layout)
    kept = sum(len(piece.lines or ()) for piece in layout.pieces)
    assert kept < 50 + max(len(layout.lines(at)) for at in range(len(layout.pieces)))
    assert _lines(layout) == lines


@pytest.mark.slow
def test_a_text_that_takes_long_is_laid_out_in_slices() -> None:
    ticks = iter(range(10**9))
    item = Item("a", Kind.ASSISTANT, "A line of it.\n\n" * 20_000)
    layout = ItemLayout(
        item, LOOK, LineCache(), lambda: next(ticks) / 1000, is_open=True, decorations=Decorations()
    )
    assert not layout.is_whole
    slices = 0
    while layout.advance(0.01):
        slices += 1
    assert slices > 5
    assert _lines(layout) == [line.drawn for piece in drawn_item(item, LOOK, is_open=True) for line in piece]
