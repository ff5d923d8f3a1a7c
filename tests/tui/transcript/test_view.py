"""The transcript view: every row is right after any change, and the top row moves only when it may."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from rolling_chat.settings.themes import load_themes
from rolling_chat.tui.theming import textual_theme
from rolling_chat.tui.transcript.items import Item, Kind, Status
from rolling_chat.tui.transcript.render import gap_before, render_item
from rolling_chat.tui.transcript.view import Transcript


class ViewApp(App[None]):
    """Nothing but a transcript."""

    def compose(self) -> ComposeResult:
        yield Transcript()

    @property
    def view(self) -> Transcript:
        return self.query_one(Transcript)


def _items(count: int, lines: int = 3) -> list[Item]:
    return [
        Item(
            str(n),
            (Kind.USER, Kind.ASSISTANT)[n % 2],
            "\n\n".join(f"item {n} line {k}" for k in range(lines)),
        )
        for n in range(count)
    ]


def _naive(view: Transcript, items: list[Item]) -> list[str]:
    """Every row, drawn without the view's help."""
    rows: list[str] = []
    for at, item in enumerate(items):
        rows += [""] * gap_before(item, items[at - 1] if at else None)
        rows += ["".join(s.text for s in line).rstrip() for line in render_item(item, view._look)]
    return rows


async def _settled(pilot: Pilot[None], view: Transcript) -> None:
    for _ in range(2000):
        await pilot.pause()
        if not view._low and view._high == len(view._items):
            return
    raise AssertionError("the rest was never laid out")


def _top(view: Transcript) -> str:
    return view.lines()[view.scroll_offset.y]


async def test_it_follows_the_end(tmp_path: Path) -> None:
    app = ViewApp()
    async with app.run_test(size=(60, 12)) as pilot:
        for count in range(1, 30):
            app.view.show_items(_items(count))
        await pilot.pause()
        assert app.view.scroll_offset.y == app.view.max_scroll_y > 0
        assert app.view.lines()[-1].strip() == "item 28 line 2"


async def test_whoever_scrolled_up_is_left_alone_while_more_comes(tmp_path: Path) -> None:
    app = ViewApp()
    async with app.run_test(size=(60, 12)) as pilot:
        items = _items(20)
        app.view.show_items(items)
        await _settled(pilot, app.view)
        app.view.scroll_pages(-2)
        top, offset = _top(app.view), app.view.scroll_offset.y
        for n in range(30):
            items = [*items[:-1], replace(items[-1], text=items[-1].text + f"\n\nmore {n}")]
            app.view.show_items(items)
        app.view.show_items([*items, *_items(40)[20:]])
        await pilot.pause()
        assert (_top(app.view), app.view.scroll_offset.y) == (top, offset)
        app.view.scroll_to_newest()
        assert app.view.follow
        app.view.show_items([*items, *_items(50)[20:]])
        await pilot.pause()
        assert app.view.scroll_offset.y == app.view.max_scroll_y


async def test_a_long_conversation_shows_its_end_first_and_the_rest_follows_unseen() -> None:
    app = ViewApp()
    async with app.run_test(size=(60, 12)) as pilot:
        items = _items(600)
        app.view.show_items(items)
        assert app.view._low > 500
        assert app.view.lines()[-1].strip() == "item 599 line 2"
        app.view.scroll_pages(-1)
        top = _top(app.view)
        await _settled(pilot, app.view)
        assert _top(app.view) == top
        assert app.view.lines() == _naive(app.view, items)


async def test_a_resize_keeps_the_item_at_the_top() -> None:
    app = ViewApp()
    async with app.run_test(size=(80, 12)) as pilot:
        items = [replace(item, text=item.text + " with words that wrap" * 9) for item in _items(60)]
        app.view.show_items(items)
        await _settled(pilot, app.view)
        app.view.scroll_to(y=app.view._starts[31], animate=False)
        await pilot.resize_terminal(44, 12)
        await pilot.pause()
        await _settled(pilot, app.view)
        assert app.view._anchor()[0] == 31
        assert app.view.lines() == _naive(app.view, items)


@pytest.mark.parametrize("seed", range(6))
async def test_after_any_changes_every_row_is_what_a_fresh_drawing_gives(seed: int) -> None:
    chance = random.Random(seed)
    app = ViewApp()
    async with app.run_test(size=(50, 14)) as pilot:
        items: list[Item] = []
        for step in range(60):
            match chance.randrange(6):
                case 0 | 1:
                    items = [
                        *items,
                        Item(
                            f"i{step}", chance.choice(list(Kind)), f"new *{step}*\n" * chance.randrange(1, 9)
                        ),
                    ]
                case 2 if items:
                    items = [
                        *items[:-1],
                        replace(items[-1], text=items[-1].text + " and more" * chance.randrange(30)),
                    ]
                case 3 if items:
                    at = chance.randrange(len(items))
                    items = [*items[:at], replace(items[at], status=Status.CANCELLED), *items[at + 1 :]]
                case 4:
                    app.view.scroll_lines(chance.randrange(-30, 30))
                case 5:
                    await pilot.resize_terminal(chance.randrange(20, 90), chance.randrange(6, 30))
                    await pilot.pause()
            app.view.show_items(items)
            if chance.randrange(9) == 0:
                app.view.set_details(not app.view.details)
        await _settled(pilot, app.view)
        assert app.view.lines() == _naive(app.view, items)
        assert app.view.virtual_size.height == len(_naive(app.view, items))


async def test_only_what_changed_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    app = ViewApp()
    drawn: list[str] = []

    def counted(item: Item, look: object) -> object:
        drawn.append(item.id)
        return render_item(item, look)  # type: ignore[arg-type]  # handed through

    async with app.run_test(size=(60, 12)) as pilot:
        items = _items(40)
        app.view.show_items(items)
        await _settled(pilot, app.view)
        monkeypatch.setattr("rolling_chat.tui.transcript.view.render_item", counted)
        app.view.show_items([*items[:-1], replace(items[-1], text="changed")])
        await pilot.pause()
        assert drawn == ["39"]


async def test_another_theme_draws_in_its_colours(tmp_path: Path) -> None:
    app = ViewApp()
    async with app.run_test(size=(60, 12)) as pilot:
        for spec in load_themes(tmp_path).values():
            app.register_theme(textual_theme(spec))
        app.view.show_items(_items(4))
        seen = set()
        for name in ("midnight", "daylight", "contrast"):
            app.theme = name
            await pilot.pause()
            await pilot.pause()
            seen.add(app.view._look.palette)
        assert len(seen) == 3
