"""/search: keys are answered while it runs, and one Esc ends it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rolling_chat.agent import Chat
from rolling_chat.tui.dialogs.pickers import Picker
from tests.support.keys import echoes
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tui import draft, idle, make_app, make_chat, reads, says, shown, type_line, wait_until


async def test_esc_cancels_a_search_that_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = threading.Event()

    def takes_long(_chat: Chat, _words: str, stop: threading.Event) -> list[object]:
        if stop.wait(PATIENCE_SECONDS):
            stopped.set()
        return []

    monkeypatch.setattr(Chat, "search", takes_long)
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        await type_line(pilot, "/search flood")
        await reads(pilot, "searching · esc cancels")
        await pilot.press(*"still")
        assert draft(pilot) == "still"
        await pilot.press("escape")
        await wait_until(pilot, stopped.is_set)
        await wait_until(pilot, lambda: "esc cancels" not in shown(pilot))
        assert draft(pilot) == "still"
        await echoes(pilot)


async def test_one_esc_closes_what_was_found(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path, says("flood\n" * 2_000)), tmp_path).run_test() as pilot:
        await type_line(pilot, "flood?")
        await idle(pilot)
        await type_line(pilot, "/search flood")
        await wait_until(pilot, lambda: isinstance(pilot.app.screen, Picker))
        await pilot.press("escape")
        await pilot.press("x")
        assert draft(pilot) == "x"
