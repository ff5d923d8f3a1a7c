"""Ctrl+f: what is found, where that leads, and what the row says of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from rolling_chat.providers.protocol import TextDelta
from rolling_chat.tui.state.items import Item, Kind
from tests.support.tui import (
    draft,
    fill,
    idle,
    make_app,
    make_chat,
    reads,
    says,
    screen_of,
    shown,
    tells,
    transcript,
    type_line,
    wait_until,
)


def _many(count: int) -> list[Item]:
    return [Item(f"i{n}", (Kind.USER, Kind.ASSISTANT)[n % 2], f"message {n} of many") for n in range(count)]


def _current(pilot: Pilot[None]) -> str:
    """The row that the current hit stands in."""
    view = screen_of(pilot).transcript
    for row, marks in zip(view.viewport.rows, view._marks, strict=True):
        if any(mark.is_current for mark in marks):
            return row.line.drawn.strip()
    return ""


@pytest.mark.parametrize("size", [(80, 24), (40, 10)])
async def test_it_goes_from_hit_to_hit_and_around(tmp_path: Path, size: tuple[int, int]) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=size) as pilot:
        await idle(pilot)
        fill(pilot, *_many(60), Item("x", Kind.NOTICE, "nothing more"))
        await pilot.press("ctrl+f", *"MESSAGE 1")
        await reads(pilot, "11 of 11")  # from the newest: nothing is below what is looked at
        await wait_until(pilot, lambda: _current(pilot) == "message 19 of many")
        for key, number, row in (("enter", 1, 1), ("down", 2, 10), ("up", 1, 1), ("shift+enter", 11, 19)):
            await pilot.press(key)
            await reads(pilot, f"{number} of 11")
            await wait_until(pilot, lambda row=row: f"message {row} of" in _current(pilot))  # type: ignore[misc]
        top = screen_of(pilot).transcript.viewport.rows[0]
        await pilot.press("escape")
        await wait_until(pilot, lambda: "find:" not in shown(pilot))
        assert screen_of(pilot).transcript.viewport.rows[0].position == top.position
        await pilot.press("x")
        assert draft(pilot) == "x"


async def test_what_is_folded_is_found_and_opens_when_it_is_gone_to(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(80, 24)) as pilot:
        await idle(pilot)
        long = "row of the result\n" * 5_000 + "the needle\n" + "row of the result\n" * 5_000
        fill(pilot, *_many(9), Item("t", Kind.TOOL, "run_command cat", result=long), *_many(30)[9:])
        await tells(pilot, "run_command cat")
        assert "the needle" not in transcript(pilot)
        await pilot.press("ctrl+f", *"needle")
        await reads(pilot, "│ the needle")
        await reads(pilot, "1 of 1")
        await wait_until(pilot, lambda: _current(pilot) == "│ the needle")


async def test_what_streams_in_is_found_too(tmp_path: Path) -> None:
    gate, end = asyncio.Event(), asyncio.Event()
    reply = [TextDelta("a needle\n\n"), gate, TextDelta("needles\n\n" * 40), end]
    chat = make_chat(tmp_path, [*reply, *says("a needle\n\n" + "needles\n\n" * 40)[1:]])
    async with make_app(chat, tmp_path).run_test(size=(80, 24)) as pilot:
        await type_line(pilot, "go")
        await reads(pilot, "▍ a needle")
        await pilot.press("ctrl+f", *"needle")
        await reads(pilot, "1 of 1")
        gate.set()
        await reads(pilot, "1 of 41")
        assert _current(pilot).endswith("a needle"), "what is looked at stays"
        end.set()
        await idle(pilot)
        await pilot.press("up")
        await reads(pilot, "41 of 41")


async def test_nothing_found_says_so(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(80, 24)) as pilot:
        await idle(pilot)
        await pilot.press("ctrl+f", *"zz[(")
        await reads(pilot, "not found")
        await pilot.press("enter", "up", "escape", "ctrl+f", "ctrl+c")
        await wait_until(pilot, lambda: "find:" not in shown(pilot))


async def test_messages_that_are_still_being_read_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(100, 24)) as pilot:
        await idle(pilot)
        screen = screen_of(pilot)
        fill(pilot, *_many(9))
        monkeypatch.setattr(type(screen.chat.session.conversation), "is_whole", property(lambda _: False))
        await pilot.press("ctrl+f", *"message")
        await reads(pilot, "1 of 9 · older messages are still being read")
        monkeypatch.setattr(type(screen.chat.session.conversation), "is_whole", property(lambda _: True))
        screen.state.items.prepend([Item("old", Kind.USER, "an old message")])
        screen.state.revision += 1
        screen.finding.search_again()
        await reads(pilot, "2 of 10")
        assert "older messages" not in shown(pilot)


@pytest.mark.parametrize("leave", ["tab", "click"])
async def test_who_writes_on_while_it_is_open_reads_what_the_keys_do_then(tmp_path: Path, leave: str) -> None:
    async with make_app(make_chat(tmp_path, says("It is 8443.")), tmp_path).run_test() as pilot:
        await type_line(pilot, "Which port?")
        await idle(pilot)
        await pilot.press("ctrl+f", *"port")
        await reads(pilot, "1 of 1", "enter next")
        await (pilot.press("tab") if leave == "tab" else pilot.click("#prompt"))
        await wait_until(pilot, lambda: screen_of(pilot).focused is screen_of(pilot).prompt)
        await reads(pilot, "find: port", "enter send")
        await pilot.press("x", "escape")
        await wait_until(pilot, lambda: "find:" not in shown(pilot))
        assert draft(pilot) == "x"


async def test_the_keys_row_is_about_the_prompt_when_that_has_the_keys(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        await idle(pilot)
        await pilot.press("ctrl+f", "tab", *"abc")
        assert draft(pilot) == "abc"
        await reads(pilot, "find:", "enter send  esc close find")
        await pilot.press("tab")
        await reads(pilot, "enter next")
        await pilot.press("f6", "escape")
        await reads(pilot, "enter next")
        await pilot.press("escape")
        await wait_until(pilot, lambda: "find:" not in shown(pilot))
        await reads(pilot, "enter send")


@pytest.mark.parametrize("pastes", [True, False])
async def test_who_writes_on_from_reading_what_was_found_writes_into_the_prompt(
    tmp_path: Path, pastes: bool
) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        await idle(pilot)
        await pilot.press("ctrl+f", "f6")
        await reads(pilot, "esc back")
        if pastes:
            pilot.app.post_message(events.Paste("he"))
        else:
            await pilot.press(*"he")
        await wait_until(pilot, lambda: draft(pilot) == "he")
        await pilot.press(*"llo")
        assert draft(pilot) == "hello"


async def test_finding_ends_the_search_of_the_history_with_what_that_found(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path, says("Noted.")), tmp_path).run_test() as pilot:
        await type_line(pilot, "said before")
        await idle(pilot)
        await pilot.press("ctrl+r", *"said")
        await reads(pilot, "history: said")
        await pilot.press("ctrl+f")
        await reads(pilot, "find:", "❯ said before", "enter next")
        assert "history:" not in shown(pilot)
        assert draft(pilot) == "said before"
