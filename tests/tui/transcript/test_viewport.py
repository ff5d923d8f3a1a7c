"""The oracle: whatever happens, what is looked at is what a naive drawing of everything has there."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from rolling_chat.tui.state.fates import Fates, ItemFate
from rolling_chat.tui.state.item_list import ItemList
from rolling_chat.tui.state.items import Item, Kind, Status
from rolling_chat.tui.transcript.colors import Look, Palette
from rolling_chat.tui.transcript.document import Document
from rolling_chat.tui.transcript.selection import Point, selected_text
from rolling_chat.tui.transcript.viewport import Viewport
from tests.support.transcripts import NaiveRow, naive_rows

PARTS = [
    "# Title\n\n", "Some **bold** text that is long enough to wrap here and there.\n", "\n", "- item\n",
    "- other\n\n", "1. one\n   - nested\n", "```python\n", "def f(x):\n\treturn x\n", "```\n", "> quote\n",
    "| a | b |\n|---|---|\n", "| 漢字 | 👩‍👩‍👧 |\n", "word " * 40, "x" * 150, "\n\n", "---\n",
    "[x]: http://y.z\n", "see [x]\n", "é\u0301\u200b", "    code\n", "\r\n", "\x1b[2J",
    "| row | more |\n" * 25, "line\n" * 50, "- many\n" * 30,
]  # fmt: skip


class History:
    """A conversation that goes on at random, and the view of it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.items = ItemList()
        # on a clock that stands still no text takes too long to be laid out at once
        self.document = Document(self.items, Look(50, Palette()), clock=lambda: 0.0)
        self.viewport = Viewport(self.document, 12)
        self.count = 0
        self.live: int | None = None
        self.selected: tuple[Point, Point] | None = None

    def text(self) -> str:
        return "".join(self.chance.choices(PARTS, k=self.chance.randrange(1, 9)))

    def item(self, status: Status | None = None) -> Item:
        self.count += 1
        kind = self.chance.choice(list(Kind))
        status = status or self.chance.choice([Status.DONE, Status.CUT, Status.CANCELLED, Status.FAILED])
        return Item(f"i{self.count}", kind, self.text(), status, result=self.text(), note="12 tokens")

    # -- what may happen to the items: nobody who scrolled up moves

    def append(self) -> None:
        self.items.append(self.item())

    def stream(self) -> None:
        if self.live is None or self.live not in self.items.ordinals:
            self.count += 1
            item = Item(f"i{self.count}", Kind.ASSISTANT, "", Status.LIVE)
            self.live = self.items.append(item)
        for _ in range(self.chance.randrange(1, 12)):
            self.items.grow(self.live, self.chance.choice(PARTS)[: self.chance.randrange(1, 200)])

    def seal(self) -> None:
        if self.live is not None and self.live in self.items.ordinals:
            self.items.put(self.live, replace(self.items.at(self.live), status=Status.DONE))
        self.live = None

    def older(self) -> None:
        self.items.prepend([self.item() for _ in range(self.chance.randrange(1, 6))])

    def take_back(self) -> None:
        if self.live is None and self.items.ordinals.stop > 0 and self.items.ordinals:
            item = self.items.pop()
            self.items.append(replace(item, id=item.id + "b", source=item.text + " again"))

    def tell(self) -> None:
        """A trim: other items are dimmed, and the context begins elsewhere."""
        told = [item.id for item in self.chance.sample(list(self.items), min(4, len(self.items)))]
        fates = dict.fromkeys(told, ItemFate(dimmed=True, note="4 → 2 tokens"))
        boundary = self.chance.choice(["", *told])
        self.document.set_fates(Fates(fates, boundary, "3 earlier messages" if boundary else ""))

    # -- what the person does

    def scroll(self) -> None:
        self.viewport.move(self.chance.choice([-40, -12, -3, -1, 1, 3, 12, 40]))

    def jump(self) -> None:
        match self.chance.randrange(5):
            case 0:
                self.viewport.to_start()
            case 1:
                self.viewport.to_end()
            case 2:
                self.viewport.to_row(self.chance.randrange(0, self.viewport.total + 10))
            case _:
                self.viewport.by_items(self.chance.choice([-1, 1]))

    def turn(self) -> None:
        if self.viewport.rows:
            self.document.turn(self.chance.choice(self.viewport.rows).position.ordinal)

    def turn_all(self) -> None:
        self.document.open_all(is_open=not self.document.all_open)

    def resize(self) -> None:
        width, height = self.chance.randrange(8, 90), self.chance.randrange(1, 30)
        self.viewport.resize(Look(width, Palette()), height)

    def select(self) -> None:
        """From anywhere to anywhere, in sight or not; it is copied after whatever happens next, too."""
        rows = self.naive()
        if not rows:
            return
        one, other = sorted(self.chance.choices(range(len(rows)), k=2))
        begin, end = (self.chance.randrange(len(rows[at].line.drawn) + 1) for at in (one, other))
        if one == other:
            begin, end = sorted((begin, end))
        self.selected = Point(rows[one].position, begin), Point(rows[other].position, end)

    def naive(self) -> list[NaiveRow]:
        return naive_rows(
            list(self.items), self.document.look, first=self.items.ordinals.start,
            is_open=self.document.is_open, fates=self.document.fates,
        )  # fmt: skip

    def check(self) -> None:
        naive, rows = self.naive(), self.viewport.rows
        assert len(rows) == min(self.viewport.height, len(naive))
        if not rows:
            return
        top = next(at for at, row in enumerate(naive) if row.position == rows[0].position)
        expected = naive[top : top + len(rows)]
        assert [row.position for row in rows] == [row.position for row in expected]
        assert [row.line for row in rows] == [row.line for row in expected]
        if self.viewport.follow:
            assert top == len(naive) - len(rows)
        self.check_selected(naive)

    def check_selected(self, naive: list[NaiveRow]) -> None:
        """What is copied is what the naive drawing has between the two ends, as long as both are there."""
        positions = [row.position for row in naive]
        if self.selected is None or not {point.position for point in self.selected} <= {*positions}:
            self.selected = None
            return
        first, last = self.selected
        text = ""
        for row in naive[positions.index(first.position) : positions.index(last.position) + 1]:
            begin = first.column if row.position == first.position else 0
            text += row.line.taken(begin, last.column if row.position == last.position else None)
            if row.position != last.position:
                text += "\n" if row.line.joint is None else row.line.joint
        expected = "\n".join(line.rstrip() for line in text.split("\n"))
        assert selected_text(self.document, first, last) == expected


OF_ITEMS = [History.append, History.append, History.stream, History.stream, History.stream, History.seal,
            History.older, History.take_back, History.tell]  # fmt: skip
OF_THE_PERSON = [History.scroll, History.scroll, History.jump, History.turn, History.turn_all, History.resize,
                 History.select]  # fmt: skip


def _play(seed: int, steps: int) -> None:
    history = History(seed)
    for _ in range(steps):
        if history.chance.random() < 0.6:
            _of_items(history)
        else:
            if history.chance.random() < 0.5:
                history.viewport.update()
            history.chance.choice(OF_THE_PERSON)(history)
            history.viewport.update()
        history.check()
    rows = history.document.forward(history.document.first, 10**6).rows
    assert history.viewport.total == len(rows) == len(history.naive())


def _of_items(history: History) -> None:
    """What happens to the items moves nobody who has scrolled up."""
    history.viewport.update()
    viewport = history.viewport
    left_alone = not viewport.follow and viewport.rows
    before = [(row.position, row.line.drawn) for row in viewport.rows]
    top = history.items.at(before[0][0].ordinal) if before else None
    happened = history.chance.choice(OF_ITEMS)
    happened(history)
    viewport.update()
    if left_alone and happened is not History.tell and not viewport.follow:
        position, drawn = before[0]
        assert viewport.rows[0].position.ordinal == position.ordinal
        # the item at the top may itself be the one that grew or was taken back
        if history.items.at(position.ordinal) is top and position.piece:
            assert (viewport.rows[0].position, viewport.rows[0].line.drawn) == (position, drawn)


@pytest.mark.parametrize("seed", range(60))
def test_after_anything_what_is_looked_at_is_what_is_there(seed: int) -> None:
    _play(seed, steps=15)


@pytest.mark.slow
@pytest.mark.parametrize("thousand", range(8))
def test_after_anything_thousands_of_times(thousand: int) -> None:
    for seed in range(1000 * thousand + 1000, 1000 * thousand + 2000):
        _play(seed, steps=30)


def _held_above_the_end() -> tuple[ItemList, Viewport]:
    items = ItemList([Item("t", Kind.TOOL, "read_file a", result="row\n" * 40), Item("v", Kind.USER, "x")])
    document = Document(items, Look(40, Palette()), clock=lambda: 0.0)
    viewport = Viewport(document, 10)
    viewport.update()
    document.open_all(is_open=True)
    viewport.update()
    viewport.move(-20)
    viewport.hold()
    return items, viewport


@pytest.mark.parametrize("height", [3, 10])
def test_who_let_go_above_the_end_follows_once_that_is_in_sight(height: int) -> None:
    items, viewport = _held_above_the_end()
    viewport.resize(viewport.document.look, height)
    viewport.release()
    assert not viewport.follow
    viewport.document.open_all(is_open=False)
    viewport.update()
    assert viewport.follow
    items.append(Item("n", Kind.USER, "more"))
    viewport.update()
    assert viewport.rows[-1].line.text == "more"
    assert not viewport.is_new_below


def test_who_holds_stays_when_the_end_comes_in_sight() -> None:
    _, viewport = _held_above_the_end()
    viewport.document.open_all(is_open=False)
    viewport.update()
    assert not viewport.follow


def _loaded_anew(*, count: int) -> tuple[ItemList, Viewport]:
    """Looked at in the middle; then all items are others, fewer of them above, and nobody was told."""
    items = ItemList([Item(f"i{n}", Kind.USER, f"message {n}") for n in range(60)])
    viewport = Viewport(Document(items, Look(40, Palette()), clock=lambda: 0.0), 10)
    viewport.update()
    viewport.to_position(viewport.document.beginning(30))
    items.clear([Item(f"i{n}", Kind.USER, f"message {n}") for n in range(60 - count, 60)])
    return items, viewport


def test_another_size_leaves_the_same_text_at_the_top_of_items_that_were_loaded_anew() -> None:
    _, viewport = _loaded_anew(count=45)
    viewport.resize(Look(50, Palette()), 10)
    assert viewport.rows[0].line.text == "message 30"
    viewport.update()
    assert viewport.rows[0].line.text == "message 30"


@pytest.mark.parametrize(
    "moves",
    [
        lambda viewport: viewport.move(-3),
        lambda viewport: viewport.move(3),
        lambda viewport: viewport.hold(),
        lambda viewport: viewport.to_row(2),
        lambda viewport: viewport.to_start(),
        lambda viewport: viewport.by_items(-1),
        lambda viewport: viewport.by_items(1),
        lambda viewport: viewport.resize(Look(50, Palette()), 10),
    ],
)
@pytest.mark.parametrize("count", [45, 5, 1])
def test_who_moves_before_the_paint_moves_over_what_is_there(
    moves: Callable[[Viewport], None], count: int
) -> None:
    items, viewport = _loaded_anew(count=count)
    moves(viewport)
    for row in viewport.rows:
        assert row.position.ordinal in items.ordinals
        assert row.line.text in ("", items.at(row.position.ordinal).text)


def test_who_goes_up_is_not_held_by_an_item_whose_laying_out_was_interrupted() -> None:
    now, is_busy = 0.0, False

    def clock() -> float:
        nonlocal now
        now += is_busy
        return now

    items = ItemList([Item(f"i{n}", Kind.ASSISTANT, f"message {n}\n\nand more") for n in range(60)])
    viewport = Viewport(Document(items, Look(40, Palette()), clock=clock), 10)
    viewport.update()
    is_busy = True
    for _ in range(3):
        viewport.move(-10)
    held = viewport.anchor
    is_busy = False
    for _ in range(3):
        viewport.move(-10)
    assert viewport.anchor.ordinal < held.ordinal - 5
