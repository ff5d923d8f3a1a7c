"""The transcript is read, and taken from, while what it shows changes."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from rolling_chat.tui.state.fates import Fates
from rolling_chat.tui.state.items import Item, Kind
from rolling_chat.tui.widgets import scrolling
from rolling_chat.tui.widgets.transcript import Transcript
from tests.support.tui import idle, make_app, make_chat, screen_of, transcript, wait_until

TOOL = Item("t", Kind.TOOL, "read_file a.py", result="a long result line of the tool, many words long\n" * 3)
ITEMS = (Item("u", Kind.USER, "q"), TOOL, Item("v", Kind.USER, "hi"), Item("b", Kind.ASSISTANT, "last"))
LONG = "paragraph of *many* words\n\n" * 400


def _fill(pilot: Pilot[None], *items: Item) -> Transcript:
    screen = screen_of(pilot)
    screen.state.items.clear(items)
    screen._painter.paint()
    return screen.transcript


async def test_a_cursor_in_what_is_folded_goes_on_from_its_head(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(80, 30)) as pilot:
        await idle(pilot)
        shown = _fill(pilot, *ITEMS)
        await pilot.press("ctrl+o", "f6", "k", "k", "k", "k", "k", "ctrl+e")
        assert shown.cursor is not None
        assert (shown.cursor.item.id, shown.cursor.point.position.piece > 1) == ("t", True)
        await pilot.press("ctrl+o")
        assert shown.cursor.point.position == shown.document.beginning(1)
        await pilot.press("right", "up", "ctrl+o", "end")
        assert shown.cursor.item.id == "b"


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_changes_the_cursor_stands_on_a_row_that_is_in_sight(
    tmp_path: Path, seed: int
) -> None:
    choose = random.Random(seed)
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(60, 12)) as pilot:
        await idle(pilot)
        shown = _fill(
            pilot, *ITEMS, *(Item(f"m{n}", Kind.USER, "more " * n) for n in range(9)), replace(TOOL, id="t2")
        )
        await pilot.press("f6")
        changes = (
            *[lambda: shown.set_details(choose.choice((True, False)))] * 3,
            lambda: shown.turn(choose.choice((1, 13))),
            lambda: shown.show_fates(Fates(boundary=f"m{choose.randrange(9)}", rule="earlier messages")),
            lambda: shown.scroll_items(choose.choice((-1, 1))),
            lambda: shown.move_lines(choose.choice((-30, 4, 30))),
            lambda: screen_of(pilot).state.items.append(Item(f"n{choose.random()}", Kind.USER, "new")),
        )
        for _ in range(150):
            choose.choice(changes)()
            if choose.random() < 0.5:
                screen_of(pilot).reading.key(_key(choose))
            if choose.random() < 0.2:
                shown.show(screen_of(pilot).state.items)
            assert shown.cursor is not None
            point, rows = shown.cursor.point, shown.viewport.rows
            row = next(row for row in rows if row.position == point.position)
            assert row.line.gutter <= point.column <= len(row.line.drawn)


async def test_all_of_a_long_selection_is_copied_beside_the_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrolling, "SLICE", 0.0)
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(80, 20)) as pilot:
        await idle(pilot)
        _fill(pilot, Item("a", Kind.ASSISTANT, LONG), Item("v", Kind.USER, "LAST"))
        await pilot.press("f6", "g", "v", "G", "y")
        await wait_until(pilot, lambda: screen_of(pilot).state.said.startswith("Copied"))
        copied = pilot.app.clipboard
        assert screen_of(pilot).state.said == f"Copied {len(copied):,} characters."
        assert copied == LONG.replace("*", "") + "LAST"


async def test_a_copy_of_what_is_loaded_anew_meanwhile_is_called_off_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrolling, "SLICE", 0.0)
    monkeypatch.setattr(scrolling, "_BREATH", 0.05)
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(120, 20)) as pilot:
        await idle(pilot)
        _fill(pilot, Item("a", Kind.ASSISTANT, LONG), Item("v", Kind.USER, "LAST"))
        await pilot.press("f6", "g", "v", "G", "y")
        _fill(pilot, *ITEMS)
        await wait_until(pilot, lambda: "nothing was copied" in transcript(pilot))
        assert pilot.app.clipboard == ""


def _key(choose: random.Random) -> events.Key:
    key = choose.choice(
        ("k", "j", "left", "right", "right", "ctrl+left", "ctrl+e", "ctrl+a", "g", "G", "p", "n")
    )
    return events.Key(key, key if len(key) == 1 else None)
