"""Vim's keys in the real prompt box: modes, tokens, undo, the history, and what Esc still does."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual import events
from textual.pilot import Pilot

from rolling_chat.providers.protocol import TextDelta
from rolling_chat.settings.schema import ScreenSettings, Settings
from rolling_chat.tui.drafts.pastes import drawn
from rolling_chat.tui.drafts.vim import VimKeys
from tests.support.tui import (
    MODEL,
    ScriptedProvider,
    busy,
    draft,
    idle,
    make_app,
    make_chat,
    reads,
    says,
    screen_of,
    type_line,
    wait_until,
)


def with_vim(pilot: Pilot[None]) -> None:
    screen_of(pilot).prompt.vim = VimKeys()


async def test_the_setting_switches_them_on(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, settings=Settings(model=MODEL, screen=ScreenSettings(vim=True)))
    async with make_app(chat, tmp_path).run_test() as pilot:
        await pilot.press(*"one two", "escape")
        await reads(pilot, "i type (normal mode)")
        await pilot.press("b", "d", "w")
        assert draft(pilot) == "one "
        await pilot.press("u")
        assert draft(pilot) == "one two"
        await pilot.press("0", "c", "w", *"six", "escape", "u", "ctrl+r")
        assert draft(pilot) == "six two"


async def test_without_the_setting_esc_and_letters_are_as_ever(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        await pilot.press(*"one", "escape", "x")
        assert draft(pilot) == "onex"


async def test_a_message_is_sent_from_normal_mode_and_the_next_is_typed(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, provider=ScriptedProvider([says("Yes."), says("No.")]))
    async with make_app(chat, tmp_path).run_test() as pilot:
        with_vim(pilot)
        await pilot.press(*"first", "escape", "enter")
        await idle(pilot)
        await type_line(pilot, "second")
        await idle(pilot)
        assert [message.text for message in chat.session.messages if message.role == "user"] == [
            "first",
            "second",
        ]
        await pilot.press("escape", "k")
        assert draft(pilot) == "second"
        await pilot.press("k")
        assert draft(pilot) == "first"
        await pilot.press("j", "j")
        assert draft(pilot) == ""


async def test_esc_stops_an_answer_from_normal_mode_and_a_slash_begins_a_command(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, provider=ScriptedProvider([[TextDelta("On and on"), asyncio.Event()]]))
    async with make_app(chat, tmp_path).run_test() as pilot:
        with_vim(pilot)
        await type_line(pilot, "go")
        await busy(pilot)
        await reads(pilot, "esc esc stop")
        await pilot.press("escape")
        assert screen_of(pilot).state.busy
        await pilot.press("escape")
        await idle(pilot)
        await pilot.press(*"/he")
        assert draft(pilot) == "/he"


async def test_a_folded_paste_is_one_to_every_command(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        with_vim(pilot)
        box = screen_of(pilot).prompt
        await pilot.press(*"a ")
        box.post_message(events.Paste("line\n" * 400))
        await pilot.press(*" b", "escape", "0", "w")
        await pilot.press("~", "r", "x")
        assert "[paste 1: 400 lines" in drawn(draft(pilot))
        await pilot.press("x")
        assert draft(pilot) == "a  b"
        await pilot.press("u")
        assert "[paste 1: 400 lines" in drawn(draft(pilot))


async def test_what_is_selected_is_drawn_and_cut(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        with_vim(pilot)
        await pilot.press(*"one two three", "escape", "0", "w", "v", "e")
        await wait_until(pilot, lambda: screen_of(pilot).prompt.selected_text == "two")
        await reads(pilot, "visual mode")
        await pilot.press("d", "p")
        assert draft(pilot) == "one  twothree"
