"""A message too large by itself is asked about: head and tail, as a file, or edited; nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from rolling_chat.providers.protocol import ErrorKind, ProviderError
from rolling_chat.tui.widgets.question import Question
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
    type_line,
    wait_until,
)

LARGE = "What is in it?\n" + "".join(f"{number} words of it\n" for number in range(4_000)) + "the end"
WINDOW = 8_000


async def _asked(pilot: Pilot[None], text: str = LARGE) -> None:
    await type_line(pilot, text)
    await reads(pilot, "Your message is too large", "1 Send its head and tail", "3 Edit it")


async def _gone(pilot: Pilot[None]) -> None:
    await wait_until(pilot, lambda: not pilot.app.screen.query(Question))


@pytest.mark.parametrize(("answer", "sends_tail"), [("1", True), ("2", False)])
async def test_what_is_chosen_is_sent_in_its_place_and_names_the_file(
    tmp_path: Path, answer: str, sends_tail: bool
) -> None:
    clock = Clock()
    chat = make_chat(tmp_path, says("I see."), window=WINDOW)
    async with make_app(chat, tmp_path, clock=clock).run_test() as pilot:
        await _asked(pilot)
        await listens(pilot, clock)
        await pilot.press(answer, "enter")
        await tells(pilot, "I see.", "[my whole message (about", "What is in it?")
        await idle(pilot)
        assert len(chat.session.messages) == 2
        assert ("the end" in chat.session.messages[0].text) == sends_tail
        (file,) = (tmp_path / "attachments").rglob("*.txt")
        assert str(file) in chat.session.messages[0].text
        assert file.read_text() == LARGE
        assert draft(pilot) == ""


async def test_esc_puts_the_text_back_into_the_box(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path, window=WINDOW), tmp_path).run_test() as pilot:
        await _asked(pilot)
        await pilot.press("escape")
        await _gone(pilot)
        await wait_until(pilot, lambda: screen_of(pilot).prompt.draft.whole == LARGE)
        assert not screen_of(pilot).chat.session.messages
        assert "What is in it?" not in transcript(pilot)
        assert not (tmp_path / "attachments").exists()


async def test_rolling_context_is_offered_once_only_history_is_in_the_way(tmp_path: Path) -> None:
    clock = Clock()
    chat = make_chat(tmp_path, says("word " * 3_500), says("I see."), window=WINDOW)
    async with make_app(chat, tmp_path, clock=clock).run_test() as pilot:
        await type_line(pilot, "hello")
        await idle(pilot)
        await _asked(pilot)
        await listens(pilot, clock)
        await pilot.press("enter")
        await reads(pilot, "The conversation no longer fits")
        await listens(pilot, clock)
        await pilot.press("enter")
        await tells(pilot, "I see.")
        assert chat.session.rolling


@pytest.mark.parametrize("command", ["/new", "/undo"])
async def test_a_command_leaves_the_question_and_what_it_does_is_done_once(
    tmp_path: Path, command: str
) -> None:
    chat = make_chat(tmp_path, says("Hello."), window=WINDOW)
    async with make_app(chat, tmp_path).run_test() as pilot:
        await type_line(pilot, "hello")
        await idle(pilot)
        await _asked(pilot)
        await type_line(pilot, command)
        await _gone(pilot)
        await wait_until(pilot, lambda: len(chat.session.messages) == (0 if command == "/new" else 2))
        await idle(pilot)
        assert len(chat.session.messages) == (0 if command == "/new" else 2)
        assert screen_of(pilot).prompt.draft.whole == ("" if command == "/new" else LARGE)


async def test_a_file_that_cannot_be_written_is_said_and_the_message_stays(tmp_path: Path) -> None:
    clock = Clock()
    (tmp_path / "attachments").write_text("in the way")
    chat = make_chat(tmp_path, window=WINDOW)
    async with make_app(chat, tmp_path, clock=clock).run_test() as pilot:
        await _asked(pilot)
        await listens(pilot, clock)
        await pilot.press("2", "enter")
        await tells(pilot, "! ", str(tmp_path / "attachments")[:20])
        await idle(pilot)
        assert [message.text for message in chat.session.messages] == [LARGE]


async def test_a_short_message_without_history_that_is_refused_is_not_offered_anything(
    tmp_path: Path,
) -> None:
    full = ProviderError(ErrorKind.TOO_LONG, "The prompt is too long for the model.")
    async with make_app(make_chat(tmp_path, [full]), tmp_path).run_test() as pilot:
        await type_line(pilot, "go")
        await tells(pilot, "Nothing can be omitted to make room: system prompt")
        await idle(pilot)
        assert not pilot.app.screen.query(Question)
