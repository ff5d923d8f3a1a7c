"""The screen over a store across a network: no key ever waits for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.pilot import Pilot

from rolling_chat.messages import Message
from rolling_chat.sessions.opening import open_store
from tests.support.far_store import FarStore
from tests.support.tui import (
    calls,
    draft,
    idle,
    make_app,
    make_chat,
    reads,
    says,
    screen_of,
    tells,
    type_line,
    wait_until,
)


async def say(pilot: Pilot[None], command: str, *told: str) -> None:
    await type_line(pilot, command)
    await tells(pilot, *told)


async def test_what_is_done_at_the_keyboard_calls_the_store_off_the_loop(tmp_path: Path) -> None:
    far = FarStore(open_store(None))
    looking = calls("list_files", text="Let me see.")
    replies = (looking, looking, says("So it is."), says("And so on."), says("Again."))
    chat = await asyncio.to_thread(make_chat, tmp_path, *replies, folder=tmp_path, store=far.as_store)
    far.on_loop.clear()  # what the test itself has opened
    async with make_app(chat, tmp_path).run_test(size=(100, 40)) as pilot:
        await idle(pilot)
        await say(pilot, "What is here?", "So it is.")
        await idle(pilot)
        await say(pilot, "And then?", "And so on.")
        await idle(pilot)
        await say(pilot, "/rename A title", "The session is called 'A title' now.")
        await say(pilot, "/share bob", "shared with nobody")
        await say(pilot, "/undo", "Took back turn 2")
        await wait_until(pilot, lambda: draft(pilot) == "And then?")
        await pilot.press("ctrl+c")
        await say(pilot, "/redo", "Back where you were")
        await say(pilot, "/retry", "Again.")
        await idle(pilot)
        await type_line(pilot, "/branches")
        await reads(pilot, "Branches that were left")
        await pilot.press("escape")
        await say(pilot, "/fork", "This is a copy of session")
        await type_line(pilot, "/sessions")
        await reads(pilot, "Sessions", "A title")
        await pilot.press("down", "enter")
        await type_line(pilot, "/cost")
        await reads(pilot, "Cost of this session")
        await pilot.press("escape")
        await say(pilot, "/new", "A new session.")
        assert far.on_loop == []
        assert {"append", "update_session", "fork", "move_head", "claim"} <= set(far.off_loop)


async def test_a_session_that_another_writes_is_followed_off_the_loop(tmp_path: Path) -> None:
    place = tmp_path / "sessions.db"
    far, writer = FarStore(open_store(place)), open_store(place)
    info = writer.create_session(folder=str(tmp_path), model="demo/offline", rolling=False)
    writer.append(info.id, Message("user", "The kettle is blue."))
    writer.claim(info.id)
    chat = await asyncio.to_thread(make_chat, tmp_path, says("I see."), folder=tmp_path, store=far.as_store)
    far.on_loop.clear()
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await type_line(pilot, f"/resume {info.id}")
        await reads(pilot, "The kettle is blue.")
        writer.append(info.id, Message("assistant", "So it is."))
        screen_of(pilot)._following.look()
        await reads(pilot, "So it is.")
        writer.release(info.id)
        screen_of(pilot)._following.look()
        await tells(pilot, "has closed this session")
        assert far.on_loop == []
    writer.close()


async def test_a_store_out_of_reach_is_told_once_and_so_is_its_return(tmp_path: Path) -> None:
    far = FarStore(open_store(None))
    chat = await asyncio.to_thread(make_chat, tmp_path, store=far.as_store)
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        far.trouble = "the session store at db.example.org is out of reach and is tried again"
        for _ in range(2):
            screen_of(pilot)._following.look()
        await tells(pilot, "The session store at db.example.org is out of reach and is tried again.")
        far.trouble = ""
        for _ in range(2):
            screen_of(pilot)._following.look()
        await tells(pilot, "The session store answers again.")
        said = [item.text for item in screen_of(pilot).state.items]
        assert sum("out of reach" in text for text in said) == 1
        assert sum("answers again" in text for text in said) == 1
