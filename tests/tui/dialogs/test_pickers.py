"""A list to choose from, over the chat."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import OptionList

from rolling_chat.commands import Choice
from rolling_chat.tui.dialogs import pickers
from rolling_chat.tui.dialogs.pickers import Picker, matching
from tests.support.tui import make_app, make_chat, reads, wait_until


async def test_another_size_leaves_the_choice_under_the_cursor(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        chosen: list[str | None] = []
        picker = Picker("Which?", [Choice(name, name) for name in ("red", "green", "blue")], current="green")
        pilot.app.push_screen(picker, chosen.append)
        await reads(pilot, "● green")
        await pilot.press("down")
        await pilot.resize_terminal(60, 20)
        await wait_until(pilot, lambda: picker.size.width == 60)
        await pilot.press("enter")
        await wait_until(pilot, lambda: chosen)
        assert chosen == ["blue"]


@pytest.mark.parametrize("key", ["pageup", "pagedown", "up", "down"])
async def test_a_key_while_the_list_has_no_room_breaks_nothing(tmp_path: Path, key: str) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        picker = Picker("Which?", [Choice(name, name) for name in ("red", "green", "blue")], current="green")
        await pilot.app.push_screen(picker)
        options = picker.query_one(OptionList)
        options.styles.height = 0
        await wait_until(pilot, lambda: not options.scrollable_content_region)
        picker.narrow("")
        await pilot.press(key)
        options.styles.height = "auto"
        await reads(pilot, "● green")


@pytest.mark.parametrize(("query", "most"), [("x" * 20_000, 0), ("qzx", 1_000)])
def test_a_key_in_a_long_list_is_never_waited_for(
    monkeypatch: pytest.MonkeyPatch, query: str, most: int
) -> None:
    compared = 0

    class Counted(pickers.Matcher):
        def match(self, candidate: str) -> float:
            nonlocal compared
            compared += 1
            return super().match(candidate)

    monkeypatch.setattr(pickers, "Matcher", Counted)
    matching([Choice(str(number), f"a message, {number}", "") for number in range(3_000)], query)
    assert compared <= most
