"""Starting, crashing and leaving."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.color import Color
from textual.worker import WorkerFailed

from rolling_chat.agent import Chat
from rolling_chat.sessions.opening import open_store
from rolling_chat.settings.schema import Settings
from rolling_chat.settings.themes import load_themes
from rolling_chat.tui.app import RollingChatApp
from rolling_chat.tui.controllers.painting import Painter
from rolling_chat.tui.screens import chat_screen
from rolling_chat.tui.start import run_app
from rolling_chat.tui.state.screen_state import ScreenState
from rolling_chat.tui.widgets.find import FindBar
from tests.support.tui import (
    ScriptedProvider,
    idle,
    make_app,
    make_chat,
    make_paths,
    reads,
    says,
    screen_of,
    tells,
    transcript,
    type_line,
    wait_until,
)


def test_nothing_heavy_is_imported_with_the_screen() -> None:
    heavy = ("litellm", "pydantic", "httpx", "aiohttp", "openai", "markdown_it", "pygments", "tiktoken")
    imports = "sys, rolling_chat.tui.start, rolling_chat.tui.screens.chat_screen"
    code = f"import {imports}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_the_provider_is_warmed_after_the_first_paint(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    async with make_app(make_chat(tmp_path, provider=provider), tmp_path).run_test() as pilot:
        await wait_until(pilot, lambda: provider.warmed == 1)
        await reads(pilot, "rolling-chat")


async def test_a_provider_that_cannot_be_warmed_leaves_the_screen_alone(tmp_path: Path) -> None:
    class Broken(ScriptedProvider):
        async def warm_up(self, model: str, api_base: str | None) -> None:
            raise RuntimeError("no such module")

    provider = Broken([says("fine")])
    async with make_app(make_chat(tmp_path, provider=provider), tmp_path).run_test() as pilot:
        await type_line(pilot, "hi")
        await idle(pilot)
        await tells(pilot, "fine")


async def test_a_fault_in_a_turn_is_one_line_and_the_screen_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(ScreenState, "_request", broken)
    async with make_app(make_chat(tmp_path, says("x")), tmp_path).run_test() as pilot:
        await type_line(pilot, "hi")
        await idle(pilot)
        await tells(pilot, "The turn broke on a fault of the program (KeyError)")
        assert "Traceback" not in transcript(pilot)


def test_a_fault_of_the_screen_is_one_line_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: Painter) -> None:
        raise ZeroDivisionError("a bug")

    def headless(app: RollingChatApp) -> None:
        RollingChatApp.__base__.run(app, headless=True)  # type: ignore[union-attr]  # it has one

    monkeypatch.setattr(Painter, "paint", broken)
    monkeypatch.setattr(RollingChatApp, "run", headless)
    paths = make_paths(tmp_path)
    chat = make_chat(tmp_path)
    code, opened = run_app(
        lambda: chat, settings=Settings(), themes=load_themes(paths.themes_dir), paths=paths
    )
    assert (code, opened) == (1, chat)
    shown_to_person = capsys.readouterr().err
    assert shown_to_person.count("\n") == 1
    assert "ZeroDivisionError" in shown_to_person
    assert str(paths.log_file) in shown_to_person


async def test_an_unknown_theme_of_the_settings_does_not_keep_the_screen_away(tmp_path: Path) -> None:
    app = RollingChatApp(make_chat(tmp_path), theme="no-such", themes=load_themes(tmp_path))
    async with app.run_test() as pilot:
        await reads(pilot, "rolling-chat")


async def test_without_color_everything_can_still_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with make_app(make_chat(tmp_path, says("fine"), window=8192), tmp_path).run_test() as pilot:
        await type_line(pilot, "hi")
        await idle(pilot)
        await reads(pilot, "█")
        for strip in pilot.app.screen._compositor.render_strips():
            (no_color,) = pilot.app.get_line_filters()
            for segment in strip.apply_filter(no_color, pilot.app.screen.background_colors[1]):
                assert segment.style is None or segment.style.color in (None, Color.default())


async def test_a_session_held_by_another_terminal_is_followed_and_can_be_forked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_screen, "_FOLLOW_EVERY", 0.01)
    database = tmp_path / "sessions.db"
    theirs = make_chat(tmp_path, says("one"), says("two"), says("three"), store=open_store(database))
    await _say(theirs, "first")
    # another process, as far as the store can tell
    here = ScriptedProvider([says("of my own")])
    beside = replace(theirs._runtime, store=open_store(database), provider=here)
    chat = Chat.open(beside, session=beside.store.session(theirs.session.info.id))
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await tells(pilot, "first", "one", "open in another terminal (process")
        await _say(theirs, "second")
        await tells(pilot, "second", "two")
        await type_line(pilot, "/fork")
        await tells(pilot, f"This is a copy of session {theirs.session.info.short}, which stays as it was.")
        assert chat.session.info.id != theirs.session.info.id
        assert not chat.session.holder
        assert "open in another terminal" not in transcript(pilot)
        await _say(theirs, "third")
        await type_line(pilot, "mine")
        await idle(pilot)
        assert _said(chat) == ["first", "one", "second", "two", "mine", "of my own"]
        assert _said(theirs) == ["first", "one", "second", "two", "third", "three"]
        assert "third" not in transcript(pilot)
    theirs.close()


async def _say(chat: Chat, text: str) -> None:
    async for _ in chat.send(text):
        pass


def _said(chat: Chat) -> list[str]:
    return [message.text for message in chat.session.messages]


async def test_what_is_still_looked_for_when_the_program_is_left_is_no_fault(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        await idle(pilot)
        screen = screen_of(pilot)

        async def say_late() -> None:
            while screen.query(FindBar):  # noqa: ASYNC110  # nothing tells when it goes
                await asyncio.sleep(0)
            screen.query_one(FindBar).say("not found")

        screen.work(say_late)


async def test_what_is_not_there_while_the_program_runs_is_one(tmp_path: Path) -> None:
    with pytest.raises(WorkerFailed, match="No nodes match"):
        await _look_for_nothing(tmp_path)


async def _look_for_nothing(home: Path) -> None:
    async with make_app(make_chat(home), home).run_test() as pilot:
        await idle(pilot)

        async def say() -> None:
            pilot.app.screen.query_one("#nowhere", FindBar).say("not found")

        await screen_of(pilot).work(say).wait()
