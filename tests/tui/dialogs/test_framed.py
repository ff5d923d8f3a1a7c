"""What all screens over the chat have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from rolling_chat.commands import Choice, Table
from rolling_chat.tui.dialogs.framed import FramedScreen
from rolling_chat.tui.dialogs.pickers import Picker
from rolling_chat.tui.dialogs.tables_screen import TablesScreen
from rolling_chat.tui.dialogs.text_screen import TextScreen
from tests.support.tui import make_app, make_chat, reads, wait_until


async def test_closing_twice_closes_nothing_below(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        chosen: list[str | None] = []
        await pilot.app.push_screen(TextScreen("Below", "a text"))
        picker = Picker("Which?", [Choice("red", "red")])
        await pilot.app.push_screen(picker, chosen.append)
        picker.dismiss("red")
        picker.dismiss("red")
        await wait_until(pilot, lambda: chosen)
        await reads(pilot, "a text")
        assert chosen == ["red"]


@pytest.mark.parametrize("keys", [["enter", "enter"], ["enter", "escape"], ["escape", "escape"]])
async def test_keys_typed_fast_close_one_screen(tmp_path: Path, keys: list[str]) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        await pilot.app.push_screen(Picker("Which?", [Choice("red", "red")]))
        await pilot.press(*keys)
        await wait_until(pilot, lambda: len(pilot.app.screen_stack) == 2)


@pytest.mark.parametrize("pauses", range(4))
@pytest.mark.parametrize(
    "make",
    [
        partial(TablesScreen, "Files", [], [Table((), ())]),
        partial(TextScreen, "Below", "a text"),
        partial(Picker, "Which?", [Choice("red", "red")]),
    ],
    ids=["tables", "text", "picker"],
)
async def test_a_screen_closed_before_it_is_mounted_breaks_nothing(
    tmp_path: Path, make: Callable[[], FramedScreen[object]], pauses: int
) -> None:
    app = make_app(make_chat(tmp_path), tmp_path)
    async with app.run_test() as pilot:
        screen = make()
        app.push_screen(screen)
        for _ in range(pauses):
            await asyncio.sleep(0)
        screen.dismiss()
        await pilot.press("h", "i")
        await reads(pilot, "hi")
    assert not app.crash
