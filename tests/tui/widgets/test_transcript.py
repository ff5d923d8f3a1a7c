"""The transcript's view: sizes, themes, the mouse, the scroll bar; only what changed is drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.events import MouseScrollUp
from textual.geometry import Region
from textual.pilot import Pilot
from textual.scrollbar import ScrollTo

from rolling_chat.settings.themes import load_themes
from rolling_chat.tui.state.fates import Fates, ItemFate
from rolling_chat.tui.state.item_list import ItemList
from rolling_chat.tui.state.items import Item, Kind, Status
from rolling_chat.tui.theming import textual_theme
from rolling_chat.tui.widgets.transcript import Transcript


class ViewApp(App[None]):
    """Nothing but a transcript."""

    def __init__(self, *items: Item) -> None:
        super().__init__()
        self.items = ItemList(items)
        self.links: list[str] = []

    def compose(self) -> ComposeResult:
        yield Transcript()

    def on_mount(self) -> None:
        self.call_after_refresh(self.paint)

    def paint(self) -> None:
        self.view.show(self.items)

    def on_transcript_link_clicked(self, event: Transcript.LinkClicked) -> None:
        self.links.append(event.address)

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


def _rows(pilot: Pilot[None]) -> list[str]:
    width, height = pilot.app.size
    return [
        strip.text[: width - 1].rstrip() for strip in pilot.app.screen._compositor.render_strips()[:height]
    ]


async def _shown(pilot: Pilot[None]) -> list[str]:
    await pilot.pause()
    await pilot.pause()
    return _rows(pilot)


async def test_it_follows_the_end_until_somebody_scrolls_up_and_again_from_the_end() -> None:
    app = ViewApp(*_items(20))
    async with app.run_test(size=(60, 12)) as pilot:
        assert (await _shown(pilot))[-1].strip() == "item 19 line 2"
        app.view.move_lines(-2)
        before = await _shown(pilot)
        app.items.append(Item("new", Kind.ASSISTANT, "news"))
        app.paint()
        after = await _shown(pilot)
        assert after[:-1] == before[:-1]
        assert after[-1].endswith("↓ new below")
        app.view.move_lines(99)
        assert (await _shown(pilot))[-1].strip() == "news"
        assert app.view.follow


async def test_a_conversation_shorter_than_the_screen_begins_at_the_top() -> None:
    app = ViewApp(Item("u", Kind.USER, "hello"))
    async with app.run_test(size=(60, 12)) as pilot:
        assert (await _shown(pilot))[0].strip() == "❯ hello"
        app.view.move_lines(-3)
        assert (await _shown(pilot))[0].strip() == "❯ hello"
        assert app.view.follow


async def test_a_resize_keeps_the_text_at_the_top() -> None:
    text = " ".join(f"word{n}" for n in range(400))
    app = ViewApp(
        *_items(9), Item("long", Kind.ASSISTANT, text), *[replace(i, id=i.id + "b") for i in _items(9)]
    )
    async with app.run_test(size=(80, 12)) as pilot:
        await _shown(pilot)
        app.view.show_found("long", "word150")
        first = (await _shown(pilot))[0].split()[0]
        for width in (44, 61, 120, 80):
            await pilot.resize_terminal(width, 12)
            assert first in (await _shown(pilot))[0]


async def test_it_still_follows_when_the_screen_was_lower_for_a_while() -> None:
    app = ViewApp(*_items(20))
    async with app.run_test(size=(60, 20)) as pilot:
        await _shown(pilot)
        for height in (9, 20, 6, 15):
            await pilot.resize_terminal(60, height)
            app.items.append(Item(f"at {height}", Kind.USER, f"at {height}"))
            app.paint()
            assert (await _shown(pilot))[-1].strip() == f"❯ at {height}"


async def test_the_wheel_moves_by_three_lines_and_the_scroll_bar_to_a_row() -> None:
    app = ViewApp(*_items(40))
    async with app.run_test(size=(60, 12)) as pilot:
        await _shown(pilot)
        top = app.view.viewport.top
        await pilot._post_mouse_events([MouseScrollUp], offset=(3, 3))
        assert app.view.viewport.top == top - 3
        app.view.post_message(ScrollTo(y=0))
        assert (await _shown(pilot))[0].strip() == "❯ item 0 line 0"


async def test_a_click_opens_and_folds_a_tools_work() -> None:
    tool = Item("t", Kind.TOOL, "read_file a", result="the result\nof it", note="3 tokens")
    app = ViewApp(Item("u", Kind.USER, "go"), tool)
    async with app.run_test(size=(60, 12)) as pilot:
        line = next(at for at, row in enumerate(await _shown(pilot)) if "read_file" in row)
        await pilot.click(Transcript, offset=(10, line))
        assert "│ the result" in (await _shown(pilot))[line + 1]
        await pilot.click(Transcript, offset=(10, line + 1))
        assert "│ the result" in (await _shown(pilot))[line + 1], "only its head folds it"
        await pilot.click(Transcript, offset=(11, line))
        assert "the result" not in "".join(await _shown(pilot))


async def test_a_click_on_a_link_asks_and_opens_nothing() -> None:
    app = ViewApp(Item("a", Kind.ASSISTANT, "see [docs](http://x.example/y) there"))
    async with app.run_test(size=(60, 12)) as pilot:
        await _shown(pilot)
        await pilot.click(Transcript, offset=(8, 0))
        await pilot.pause()
        assert app.links == ["http://x.example/y"]


@pytest.mark.parametrize(("times", "taken"), [(2, "src/lexer.py"), (3, "see src/lexer.py there")])
async def test_two_clicks_select_a_word_and_three_a_line(times: int, taken: str) -> None:
    app = ViewApp(Item("a", Kind.ASSISTANT, "see src/lexer.py there\n\nmore"))
    async with app.run_test(size=(60, 12)) as pilot:
        await _shown(pilot)
        await pilot.click(Transcript, offset=(9, 0), times=times)
        assert app.screen.get_selected_text() == taken


@pytest.mark.parametrize("colors", [True, False], ids=["colors", "no color"])
async def test_what_is_selected_can_be_seen(colors: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not colors:
        monkeypatch.setenv("NO_COLOR", "1")
    app = ViewApp(Item("a", Kind.ASSISTANT, "see src/lexer.py there"))
    async with app.run_test(size=(60, 12)) as pilot:
        await _shown(pilot)
        await pilot.click(Transcript, offset=(9, 0), times=2)
        looks = {s.text: s.style for s in app.view.render_line(0) if s.style}
        taken, other = looks["src/lexer.py"], looks["see "]
        assert taken.color == other.color != taken.bgcolor
        assert (taken.bgcolor != other.bgcolor) if colors else taken.reverse


async def test_a_selection_stays_on_its_text_when_older_items_come_above_it() -> None:
    app = ViewApp(*_items(20))
    async with app.run_test(size=(60, 12)) as pilot:
        await _shown(pilot)
        await pilot.click(Transcript, offset=(5, 11), times=3)
        assert app.screen.get_selected_text() == "item 19 line 2"
        app.items.prepend([Item(f"o{n}", Kind.USER, "older\n" * 9) for n in range(30)])
        app.items.append(Item("new", Kind.ASSISTANT, "news"))
        app.paint()
        await _shown(pilot)
        assert app.screen.get_selected_text() == "item 19 line 2"


async def test_what_is_not_sent_is_dimmed_under_a_rule_that_says_where_the_context_begins() -> None:
    app = ViewApp(*_items(4, lines=1))
    async with app.run_test(size=(60, 14)) as pilot:
        before = await _shown(pilot)
        fates = Fates({"0": ItemFate(dimmed=True, note="omitted")}, "2", "2 earlier messages: 2 omitted")
        app.view.show_fates(fates)
        rows = await _shown(pilot)
        rule = next(
            at for at, row in enumerate(rows) if row.strip().startswith("── 2 earlier messages: 2 omitted ──")
        )
        assert "item 1" in rows[rule - 2]
        assert "item 2" in rows[rule + 2]
        color = {s.style.color.name for s in app.view.render_line(0) if "item" in s.text}
        assert color == {app.view.document.look.palette.muted}
        app.view.show_fates(Fates())
        assert await _shown(pilot) == before


async def test_only_the_rows_that_changed_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [*_items(4, lines=1), Item("a", Kind.ASSISTANT, "one\n\ntwo", Status.LIVE)]
    app = ViewApp(*items)
    async with app.run_test(size=(60, 20)) as pilot:
        await _shown(pilot)
        regions: list[Region] = []
        monkeypatch.setattr(app.view, "refresh", lambda *given, **_: regions.extend(given or [Region()]))
        app.items.grow(4, " more")
        app.paint()
        assert len({region.y for region in regions}) == 1
        regions.clear()
        app.paint()
        assert regions == []


async def test_another_theme_draws_in_its_colors(tmp_path: Path) -> None:
    app = ViewApp(*_items(4))
    async with app.run_test(size=(60, 12)) as pilot:
        for spec in load_themes(tmp_path).values():
            app.register_theme(textual_theme(spec))
        seen = set()
        for name in ("midnight", "daylight", "contrast"):
            app.theme = name
            await _shown(pilot)
            seen.add(app.view.document.look.palette)
        assert len(seen) == 3
