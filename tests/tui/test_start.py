"""The first screen: keys are taken and kept while the chat is being opened."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from textual import events
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import TextArea

from rolling_chat.agent import Chat
from rolling_chat.settings.schema import Settings
from rolling_chat.settings.themes import load_themes
from rolling_chat.tui.screens.chat_screen import ChatScreen
from rolling_chat.tui.screens.start_screen import StartScreen
from rolling_chat.tui.start import StartingApp, run_app
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tui import draft, idle, make_chat, make_paths, reads, says, tells, wait_until


class Slow:
    """Opens a chat once it is let."""

    def __init__(self, home: Path) -> None:
        self.asked = threading.Event()
        self.go = threading.Event()
        self._home = home

    def __call__(self) -> Chat:
        self.asked.set()
        assert self.go.wait(PATIENCE_SECONDS)
        return make_chat(self._home, says("fine"))


def start(open_chat: Callable[[], Chat], home: Path) -> StartingApp:
    return StartingApp(
        open_chat, folder="/work", theme="midnight", themes=load_themes(home), paths=make_paths(home)
    )


async def open_up(pilot: Pilot[None], slow: Slow) -> None:
    slow.go.set()
    await wait_until(pilot, lambda: isinstance(pilot.app.screen, ChatScreen) and pilot.app.screen.is_mounted)


async def test_what_is_typed_while_the_chat_is_opened_is_seen_at_once_and_kept(tmp_path: Path) -> None:
    slow = Slow(tmp_path)
    async with start(slow, tmp_path).run_test() as pilot:
        await pilot.press(*"abc", "left", "backspace")
        pilot.app.post_message(events.Paste("é\nf"))
        await wait_until(pilot, lambda: pilot.app.screen.query_one(TextArea).text == "aé\nfc")
        await reads(pilot, "opening the session")
        await open_up(pilot, slow)
        await pilot.press(*"XY")
        await wait_until(pilot, lambda: draft(pilot) == "aé\nfXYc")


async def test_who_quits_while_the_screens_are_changed_leaves_once_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(tmp_path)
    app = start(slow, tmp_path)
    make = app.chat_screen

    def chat_screen() -> ChatScreen:
        app.post_message(events.Key("ctrl+q", "\x11"))
        return make()

    monkeypatch.setattr(app, "chat_screen", chat_screen)
    async with app.run_test() as pilot:
        slow.go.set()
        await wait_until(pilot, lambda: not app.is_running)
    assert app.crash == ""


async def test_a_message_sent_before_the_chat_is_open_is_sent_to_it(tmp_path: Path) -> None:
    slow = Slow(tmp_path)
    async with start(slow, tmp_path).run_test() as pilot:
        await pilot.press(*"hi", "enter", *"next")
        await open_up(pilot, slow)
        await tells(pilot, "fine")
        await idle(pilot)
        assert draft(pilot) == "next"


async def test_ctrl_c_empties_the_box_of_the_first_screen_too(tmp_path: Path) -> None:
    slow = Slow(tmp_path)
    async with start(slow, tmp_path).run_test() as pilot:
        await pilot.press(*"wrong", "ctrl+c")
        await wait_until(pilot, lambda: not pilot.app.screen.query_one(TextArea).text)
        await pilot.press(*"right")
        await open_up(pilot, slow)
        await wait_until(pilot, lambda: draft(pilot) == "right")


async def test_who_quits_before_the_chat_is_open_gets_it_to_close(tmp_path: Path) -> None:
    slow = Slow(tmp_path)
    app = start(slow, tmp_path)
    async with app.run_test() as pilot:
        await wait_until(pilot, slow.asked.is_set)
        await pilot.press("ctrl+q")
        slow.go.set()
    await asyncio.get_running_loop().shutdown_default_executor()  # as the end of the program does
    assert isinstance(app.opened, Chat)
    assert app.failure is None
    app.opened.close()


def test_what_keeps_a_chat_from_being_opened_is_raised_when_the_screen_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Chat:
        assert isinstance(apps[0].screen, StartScreen)
        raise LookupError("no such session")

    def headless(app: StartingApp) -> None:
        apps.append(app)
        App.run(app, headless=True)

    apps: list[StartingApp] = []
    monkeypatch.setattr(StartingApp, "run", headless)
    with pytest.raises(LookupError, match="no such session"):
        run_app(broken, settings=Settings(), themes=load_themes(tmp_path), paths=make_paths(tmp_path))
    assert not apps[0].is_running
