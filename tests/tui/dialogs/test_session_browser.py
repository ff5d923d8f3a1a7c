"""The list of sessions: what is renamed, copied and deleted there, and what comes back."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from rolling_chat.agent import Chat
from rolling_chat.commands.sessions import sparkline
from tests.support.tui import (
    ScriptedProvider,
    idle,
    make_app,
    make_chat,
    reads,
    says,
    shown,
    type_line,
    wait_until,
)


async def chat_with(pilot: Pilot[None], chat: Chat, *titles: str) -> None:
    """Hold a conversation for each title, the last one open."""
    for at, title in enumerate(titles):
        if at:
            await type_line(pilot, "/new")
        await type_line(pilot, f"question about {title}")
        await idle(pilot)
        await type_line(pilot, f"/rename {title}")


def provider() -> ScriptedProvider:
    return ScriptedProvider([says(f"Answer {number}.") for number in range(1, 4)])


def titles(chat: Chat) -> set[str]:
    return {info.title for info in chat.saved.all()}


async def test_a_session_is_renamed_copied_and_opened_from_the_list(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, provider=provider())
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await chat_with(pilot, chat, "apples", "pears")
        await type_line(pilot, "/sessions")
        await reads(pilot, "apples", "pears", "you: question about", "tokens in the last request")
        await pilot.press(*"appl", "f2", "ctrl+u", *"plums", "enter")
        await wait_until(pilot, lambda: titles(chat) == {"plums", "pears"})
        await reads(pilot, "no match")  # the filter is as it was
        await pilot.press("ctrl+u", *"plums")
        await reads(pilot, "plums  ")
        await pilot.press("ctrl+k")
        await wait_until(pilot, lambda: len(chat.saved.all()) == 3)
        await pilot.press("enter")
        await wait_until(pilot, lambda: chat.session.info.title.startswith("plums"))


async def test_the_open_session_is_renamed_and_never_deleted(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, provider=provider())
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await chat_with(pilot, chat, "apples")
        await type_line(pilot, "/sessions")
        await reads(pilot, "● apples")
        await pilot.press("ctrl+d")
        await reads(pilot, "this session is open")
        await pilot.press("f2", "ctrl+u", *"plums", "enter")
        await wait_until(pilot, lambda: chat.session.info.title == "plums")
        await pilot.press("escape")
        await reads(pilot, "plums")


async def test_a_deleted_session_comes_back_until_the_list_is_closed(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, provider=provider())
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await chat_with(pilot, chat, "apples", "pears", "plums")
        await type_line(pilot, "/sessions")
        await reads(pilot, "● plums")
        await pilot.press("down", "ctrl+d", "ctrl+d")
        await wait_until(pilot, lambda: "apples ·" not in shown(pilot) and "deleted “apples”" in shown(pilot))
        assert titles(chat) == {"apples", "pears", "plums"}  # not deleted yet: a crash loses nothing
        await pilot.press("ctrl+r", "escape")
        await wait_until(pilot, lambda: titles(chat) == {"apples", "plums"})


async def test_esc_while_a_title_is_typed_keeps_the_old_one(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, provider=provider())
    async with make_app(chat, tmp_path).run_test(size=(80, 24)) as pilot:
        await chat_with(pilot, chat, "apples")
        await type_line(pilot, "/sessions")
        await reads(pilot, "● apples")
        await pilot.press("f2", *"nothing", "escape")
        await reads(pilot, "f2 rename")
        await pilot.press("escape")
        assert titles(chat) == {"apples"}


def test_a_sparkline_is_no_wider_than_asked_and_shows_the_largest() -> None:
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([1, 4, 8]) == "▁▄█"
    assert sparkline([*range(1_000), 7_000, *range(1_000)], 4) == "▁▁█▁"
