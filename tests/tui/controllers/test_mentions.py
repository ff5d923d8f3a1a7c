"""Files mentioned in the prompt box: completed, folded to a word with a price, only where they were typed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from rolling_chat.agent import Chat
from rolling_chat.tui.drafts.pastes import drawn
from rolling_chat.tui.widgets.completion import Completion
from tests.support.pictures import png
from tests.support.tui import (
    Clock,
    draft,
    idle,
    listens,
    make_app,
    make_chat,
    reads,
    says,
    screen_of,
    tells,
    transcript,
    wait_until,
)

posix_only = pytest.mark.skipif(os.name == "nt", reason="the program is a shell script")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "x.py").write_text("def f():\n    return 1\n")
    (folder / "a b.txt").write_text("two words\n")
    return folder


@pytest.fixture
def chat(tmp_path: Path, work: Path) -> Chat:
    return make_chat(tmp_path / "home", says("One."), says("Two."), folder=work)


def seen(pilot: Pilot[None]) -> str:
    return drawn(draft(pilot))


async def lists_files(pilot: Pilot[None]) -> None:
    await wait_until(pilot, lambda: screen_of(pilot).query_one(Completion).shown)


async def test_a_name_is_completed_and_becomes_a_word_with_its_price(tmp_path: Path, chat: Chat) -> None:
    async with make_app(chat, tmp_path).run_test() as pilot:
        await pilot.press(*"see @xp")
        await lists_files(pilot)
        await reads(pilot, "❯ src/x.py", "enter attach")
        await pilot.press("enter")
        await wait_until(pilot, lambda: "[file 1: src/x.py, 2 lines, ~" in seen(pilot))
        await reads(pilot, "this message +")
        await pilot.press(*"please", "enter")
        await idle(pilot)
        await tells(pilot, "❯ see @src/x.py please", "▸ @src/x.py 2 lines · ")
        await pilot.press("ctrl+o")
        assert "return 1" in transcript(pilot)


async def test_tab_goes_on_into_a_folder(tmp_path: Path, chat: Chat) -> None:
    async with make_app(chat, tmp_path).run_test() as pilot:
        await pilot.press(*"@sr")
        await lists_files(pilot)
        await pilot.press("tab")
        assert seen(pilot) == "@src/"
        await reads(pilot, "src/x.py")
        await pilot.press("down", "enter")
        await wait_until(pilot, lambda: seen(pilot).startswith("[file 1: src/x.py"))


async def test_a_name_with_a_space_is_quoted(tmp_path: Path, chat: Chat) -> None:
    async with make_app(chat, tmp_path).run_test() as pilot:
        await pilot.press(*"@b.t")
        await lists_files(pilot)
        await pilot.press("tab")
        await wait_until(pilot, lambda: '[file 1: "a b.txt", 1 line' in seen(pilot))


async def test_a_whole_name_needs_no_completion_and_no_word(tmp_path: Path, chat: Chat) -> None:
    async with make_app(chat, tmp_path).run_test() as pilot:
        await pilot.press(*"@src/x.py:2", "enter")
        await idle(pilot)
        await tells(pilot, "❯ @src/x.py:2", "1 line · ")


async def test_pasted_and_recalled_text_attaches_nothing(tmp_path: Path, chat: Chat) -> None:
    async with make_app(chat, tmp_path).run_test() as pilot:
        screen_of(pilot).prompt.post_message(events.Paste("@src/x.py"))
        await pilot.press("enter")
        await idle(pilot)
        await pilot.press(*"@src/x.py", "enter")
        await idle(pilot)
        await pilot.press("up")
        assert draft(pilot) == "@src/x.py"
        await pilot.press("enter")
        await idle(pilot)
    said = [message for message in chat.session.messages if message.role == "user"]
    assert [len(message.attachments) for message in said] == [0, 1, 0]


async def test_a_pasted_exclamation_mark_runs_nothing(tmp_path: Path, chat: Chat, work: Path) -> None:
    async with make_app(chat, tmp_path).run_test() as pilot:
        screen_of(pilot).prompt.post_message(events.Paste("!touch made"))
        await pilot.pause()
        assert seen(pilot) == "!touch made"
        await pilot.press("enter")
        await idle(pilot)
        await tells(pilot, "❯ !touch made", "One.")
    assert not (work / "made").exists()


async def test_a_mention_that_was_not_sent_is_one_again_after_a_restart(
    tmp_path: Path, chat: Chat, work: Path
) -> None:
    async with make_app(chat, tmp_path).run_test() as pilot:
        await pilot.press(*"@src/x.py and")
        await wait_until(pilot, lambda: seen(pilot).startswith("[file 1"))
        await screen_of(pilot).drafts.settle()
        (file,) = (tmp_path / "drafts").iterdir()
        file.write_bytes(file.read_bytes().replace(b'"pid": ', b'"pid": 9'))
    again = make_chat(tmp_path / "home", says("One."), folder=work)
    async with make_app(again, tmp_path).run_test() as pilot:
        await wait_until(pilot, lambda: seen(pilot).startswith("[file 1: src/x.py, 2 lines"))


async def test_tab_next_to_the_word_makes_it_text_again(tmp_path: Path, chat: Chat) -> None:
    async with make_app(chat, tmp_path).run_test() as pilot:
        await pilot.press(*"@src/x.py ")
        await wait_until(pilot, lambda: seen(pilot).startswith("[file 1"))
        await pilot.press("left", "tab", *":1 ")
        await wait_until(pilot, lambda: seen(pilot).startswith("[file 2: src/x.py:1, 1 line"))


async def test_a_pasted_path_of_a_picture_attaches_it_and_any_other_is_text(
    tmp_path: Path, chat: Chat, work: Path
) -> None:
    (work / "my shot.png").write_bytes(png(30, 20))
    async with make_app(chat, tmp_path).run_test() as pilot:
        prompt = screen_of(pilot).prompt
        prompt.post_message(events.Paste(f"'{work}/none.png'"))
        await pilot.pause()
        await pilot.press("ctrl+c")
        prompt.post_message(events.Paste(f"{work}/my\\ shot.png"))
        await wait_until(pilot, lambda: seen(pilot).startswith("[picture "))
        await wait_until(pilot, lambda: "PNG, 30 × 20" in seen(pilot))
        await pilot.press("enter")
        await reads(pilot, "Attach 8.5k tokens?")  # gpt-4o-mini's price of any picture


@posix_only
async def test_the_picture_on_the_clipboard_is_attached(
    tmp_path: Path, chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / "clip.png").write_bytes(png(30, 20))
    (programs / "xclip").write_text(f'#!/bin/sh\n[ "$4" = image/png ] && /bin/cat {tmp_path}/clip.png\n')
    (programs / "xclip").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    async with make_app(chat, tmp_path).run_test() as pilot:
        await pilot.press("alt+v")
        await wait_until(
            pilot, lambda: seen(pilot).startswith("[picture 1: pasted-picture-1.png, PNG, 30 × 20")
        )
        (tmp_path / "clip.png").unlink()
        await pilot.press("alt+v")
        await tells(pilot, "There is no picture on the clipboard.")


async def test_a_file_outside_is_asked_about_and_no_sends_nothing(
    tmp_path: Path, chat: Chat, work: Path
) -> None:
    (work.parent / "outside.txt").write_text("of the neighbor\n")
    clock = Clock()
    async with make_app(chat, tmp_path, clock=clock).run_test() as pilot:
        await pilot.press(*"@../outside.txt", "enter")
        await reads(pilot, "outside this folder?", "Attach it")
        await listens(pilot, clock)
        await pilot.press("escape")
        await idle(pilot)
        await wait_until(pilot, lambda: "../outside.txt" in seen(pilot))
        await pilot.press("enter")
        await reads(pilot, "Attach it")
        await listens(pilot, clock)
        await pilot.press("enter")
        await idle(pilot)
        await tells(pilot, "▸ @../outside.txt", "One.")
