"""A question is answered by whoever read it, and by nothing that was typed for something else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.events import Key, MouseScrollDown, Paste
from textual.pilot import Pilot

from rolling_chat.events import Permission
from rolling_chat.tui.widgets.detail import Detail
from rolling_chat.tui.widgets.question import Question, Reply
from tests.support.cases import Cases
from tests.support.tui import (
    Clock,
    asking_chat,
    calls,
    draft,
    idle,
    listens,
    make_app,
    make_chat,
    reads,
    says,
    screen_of,
    shown,
    tells,
    type_line,
    wait_until,
)

LONG = "\n".join(f"echo line {number}" for number in range(60))


def _question(pilot: Pilot[None]) -> Question | None:
    return next(iter(screen_of(pilot).query(Question)), None)


async def _asked(pilot: Pilot[None], clock: Clock) -> None:
    await type_line(pilot, "do it")
    await wait_until(pilot, lambda: _question(pilot))
    await listens(pilot, clock)


async def _see_all(pilot: Pilot[None]) -> None:
    detail = screen_of(pilot).query_one(Detail)
    for _ in range(detail.unseen):
        if detail.unseen:
            await pilot.press("pagedown")
    await wait_until(pilot, lambda: not detail.unseen)


def _ran(home: Path) -> bool:
    return (home / "work" / "made-by-tool").exists()


@pytest.mark.parametrize("text", ["yan", "also no", "2 things", "12", "11", "0", "9"])
async def test_letters_and_digits_that_go_on_are_the_prompts(tmp_path: Path, text: str) -> None:
    clock = Clock()
    async with make_app(asking_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
        await _asked(pilot, clock)
        await pilot.press(*(("space" if char == " " else char) for char in text))
        await wait_until(pilot, lambda: draft(pilot) == text)
        await reads(pilot, "tab answers")
        clock.pass_(5)
        await pilot.press("enter")  # what was written waits for the result
        await reads(pilot, "↳ with the next result")
        assert _question(pilot)
        assert not _ran(tmp_path)


async def test_a_digit_or_an_arrow_only_selects(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(asking_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
        await _asked(pilot, clock)
        for digit in "12345":
            await pilot.press(digit)
            await reads(pilot, f"❯ {digit} ")
            clock.pass_(60)
            await pilot.press("down")
            await reads(pilot, f"❯ {int(digit) % 5 + 1} ")
        assert _question(pilot)
        assert draft(pilot) == ""
        assert not _ran(tmp_path)


async def test_a_digit_before_a_paste_is_text_too(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(asking_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
        await _asked(pilot, clock)
        await pilot.press("2")
        pilot.app.screen.focused.post_message(Paste(" of them\n"))
        await wait_until(pilot, lambda: draft(pilot).startswith("2 of them"))
        assert _question(pilot)


async def test_backspace_takes_a_digit_back(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(asking_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
        await _asked(pilot, clock)
        await pilot.press("2")
        await reads(pilot, "❯ 2 ")
        await pilot.press("backspace")
        await reads(pilot, "❯ 1 ")
        assert draft(pilot) == ""


async def test_enter_right_after_the_question_came_answers_nothing(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(asking_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
        await type_line(pilot, "do it")
        await wait_until(pilot, lambda: _question(pilot) is not None and _question(pilot).has_focus)
        for _ in range(3):  # each begins the grace anew
            clock.pass_(0.3)
            await pilot.press("enter")
        await pilot.press("1", "enter")
        await pilot.pause()
        assert _question(pilot)
        assert not _ran(tmp_path)
        await listens(pilot, clock)
        await pilot.press("enter")
        await idle(pilot)
        assert _ran(tmp_path)


async def test_an_enter_from_before_the_answers_count_answers_nothing(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(asking_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
        await type_line(pilot, "do it")
        await wait_until(pilot, lambda: _question(pilot) is not None and _question(pilot).has_focus)
        early = Key("enter", "\r")  # typed now, and handled late: something kept the loop from turning
        await listens(pilot, clock)
        _question(pilot).post_message(early)
        await reads(pilot, "one moment")
        assert not _ran(tmp_path)
        await listens(pilot, clock)
        await pilot.press("enter")
        await idle(pilot)
        assert _ran(tmp_path)


async def test_a_late_answer_to_one_question_does_not_answer_the_next(tmp_path: Path) -> None:
    clock, folder = Clock(), tmp_path / "work"
    folder.mkdir()
    replies = [calls("run_command", id=f"c{n}", command=f"touch made-by-tool {n}") for n in range(2)]
    chat = make_chat(tmp_path, *replies, says("So it is."), folder=folder)
    async with make_app(chat, tmp_path, clock=clock).run_test() as pilot:
        await _asked(pilot, clock)
        first = _question(pilot)
        await pilot.press("escape")
        await wait_until(pilot, lambda: _question(pilot) not in (None, first) and _question(pilot).has_focus)
        screen_of(pilot).post_message(Question.Answered(first, Reply(Permission.ONCE)))
        await pilot.pause()
        await listens(pilot, clock)
        assert not _ran(tmp_path)
        await pilot.press("enter")
        await idle(pilot)
        assert _ran(tmp_path)


@pytest.mark.parametrize("command", ["git rev-parse HEAD", "echo one"])
async def test_the_rule_of_always_is_whole_on_a_small_screen(tmp_path: Path, command: str) -> None:
    clock = Clock()
    rule = " ".join(command.split()[:-1])
    async with make_app(asking_chat(tmp_path, command), tmp_path, clock=clock).run_test(
        size=(40, 12)
    ) as pilot:
        await _asked(pilot, clock)
        await pilot.press("down")
        await reads(pilot, f"Always: {rule} *")


async def test_always_says_its_rule_and_asks_again_beyond_it(tmp_path: Path) -> None:
    clock, folder = Clock(), tmp_path / "work"
    folder.mkdir()
    replies = [calls("run_command", id=f"c{n}", command=text) for n, text in enumerate(COMMANDS)]
    chat = make_chat(tmp_path, *replies, says("So it is."), folder=folder)
    async with make_app(chat, tmp_path, clock=clock).run_test(size=(120, 30)) as pilot:
        await _asked(pilot, clock)
        await reads(pilot, "2 Always: echo * (this session)")
        await pilot.press("2", "enter")
        await wait_until(pilot, lambda: "touch other" in shown(pilot) and _question(pilot))
        assert [message.text for message in chat.session.messages if message.role == "tool"] == [
            "one\n[exit code 0]",
            "two\n[exit code 0]",
        ]
        await listens(pilot, clock)
        await reads(pilot, "2 Always: exactly this command (this session)")
        await pilot.press("escape")
        await idle(pilot)
        assert not (folder / "other").exists()


COMMANDS = ["echo one", "echo two", "echo three; touch other"]


async def test_the_words_of_a_no_go_with_it_and_nothing_is_queued(tmp_path: Path) -> None:
    clock, chat = Clock(), asking_chat(tmp_path)
    async with make_app(chat, tmp_path, clock=clock).run_test() as pilot:
        await _asked(pilot, clock)
        await pilot.press("5", "enter")
        await reads(pilot, "write why, enter sends it", "enter refuse, with this")
        await pilot.press(*"2much", "enter")
        await idle(pilot)
        await tells(pilot, "refused", "So it is.")
        assert draft(pilot) == ""
        assert not _ran(tmp_path)
    result = next(message.text for message in chat.session.messages if message.role == "tool")
    assert result.endswith("They say: 2much")
    assert [message.text for message in chat.session.messages if message.role == "user"] == ["do it"]


async def test_words_that_begin_like_a_command_run_none(tmp_path: Path) -> None:
    clock, chat = Clock(), asking_chat(tmp_path)
    async with make_app(chat, tmp_path, clock=clock).run_test() as pilot:
        await _asked(pilot, clock)
        await pilot.press("5", "enter")
        await reads(pilot, "write why")
        await pilot.press(*"!touch no", "enter")
        await idle(pilot)
        await tells(pilot, "refused", "So it is.")
    assert list((tmp_path / "work").iterdir()) == []
    result = next(message.text for message in chat.session.messages if message.role == "tool")
    assert result.endswith("They say: !touch no")


@pytest.mark.parametrize("key", ["enter", "escape"])
async def test_a_no_without_words_is_a_no(tmp_path: Path, key: str) -> None:
    clock = Clock()
    async with make_app(asking_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
        await _asked(pilot, clock)
        await pilot.press("5", "enter")
        await reads(pilot, "write why")
        await pilot.press(key)
        await idle(pilot)
        assert not _ran(tmp_path)


async def test_tab_leads_from_the_words_back_to_the_answers(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(asking_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
        await _asked(pilot, clock)
        await pilot.press("5", "enter")
        await reads(pilot, "write why")
        await pilot.press("tab")
        await listens(pilot, clock)
        await reads(pilot, "❯ 1 Once")
        await pilot.press("enter")
        await idle(pilot)
        assert _ran(tmp_path)


class TestALongCommand:
    """What was not in sight is counted, and not approved in passing."""

    async def test_its_first_and_last_lines_are_shown_and_the_others_counted(self, tmp_path: Path) -> None:
        clock = Clock()
        async with make_app(asking_chat(tmp_path, LONG), tmp_path, clock=clock).run_test() as pilot:
            await _asked(pilot, clock)
            height = screen_of(pilot).query_one(Detail).size.height
            last = 2 if height >= 6 else 1
            await reads(pilot, "echo line 0", "echo line 59", f"⋯ {61 - height} more lines ⋯")
            assert f"(after {61 - height} lines not seen yet)" in shown(pilot)
            assert f"│ echo line {height - last - 1} " not in shown(pilot)

    async def test_approving_needs_all_of_it_in_sight(self, tmp_path: Path) -> None:
        clock, command = Clock(), f"{LONG}\ntouch made-by-tool"
        async with make_app(asking_chat(tmp_path, command), tmp_path, clock=clock).run_test() as pilot:
            await _asked(pilot, clock)
            await pilot.press("2", "enter", "end", "enter", "home", "end")
            await reads(pilot, "lines not seen yet")
            await pilot.press("home")
            for digit in "12" * 4:
                await pilot.press("pagedown", digit, "enter")
                assert _question(pilot)
            assert not _ran(tmp_path)
            await _see_all(pilot)
            await wait_until(pilot, lambda: "not seen yet" not in shown(pilot))
            assert "unseen" not in shown(pilot)
            await pilot.press("1", "enter")
            await idle(pilot)
            assert _ran(tmp_path)

    async def test_or_the_answer_that_says_so(self, tmp_path: Path) -> None:
        clock, command = Clock(), f"{LONG}\ntouch made-by-tool"
        async with make_app(asking_chat(tmp_path, command), tmp_path, clock=clock).run_test() as pilot:
            await _asked(pilot, clock)
            await reads(pilot, "6 Approve unseen, once")
            await pilot.press("6", "enter")
            await idle(pilot)
            assert _ran(tmp_path)

    async def test_an_enter_as_the_last_of_it_comes_in_sight_approves_nothing(self, tmp_path: Path) -> None:
        clock, command = Clock(), f"{LONG}\ntouch made-by-tool"
        async with make_app(asking_chat(tmp_path, command), tmp_path, clock=clock).run_test() as pilot:
            await _asked(pilot, clock)
            await pilot.press("6")
            question, detail = _question(pilot), screen_of(pilot).query_one(Detail)
            while detail.unseen:
                detail.scroll_pages(1)
            question.on_key(Key("enter", "\r"))  # before the question heard of it
            await reads(pilot, "write why")
            assert not _ran(tmp_path)

    async def test_up_and_enter_as_for_the_history_approve_nothing(self, tmp_path: Path) -> None:
        clock, command = Clock(), f"{LONG}\ntouch made-by-tool"
        async with make_app(asking_chat(tmp_path, command), tmp_path, clock=clock).run_test() as pilot:
            await _asked(pilot, clock)
            await pilot.press("up", "enter")
            await reads(pilot, "write why")
            assert not _ran(tmp_path)

    async def test_the_wheel_scrolls_without_a_gap(self, tmp_path: Path) -> None:
        clock = Clock()
        async with make_app(asking_chat(tmp_path, LONG), tmp_path, clock=clock).run_test() as pilot:
            await _asked(pilot, clock)
            detail = screen_of(pilot).query_one(Detail)
            before = detail.unseen
            for _ in range(60):
                detail.post_message(MouseScrollDown(detail, 1, 1, 0, 1, 0, False, False, False))
            await wait_until(pilot, lambda: detail.unseen == 0)
            assert before > 40

    async def test_another_width_makes_it_unseen_again(self, tmp_path: Path) -> None:
        clock, command = Clock(), "echo " + "word " * 200
        async with make_app(asking_chat(tmp_path, command), tmp_path, clock=clock).run_test() as pilot:
            await _asked(pilot, clock)
            detail = screen_of(pilot).query_one(Detail)
            await _see_all(pilot)
            await pilot.resize_terminal(60, 24)
            await wait_until(pilot, lambda: detail.unseen)

    async def test_no_terminal_draws_a_row_wider_than_the_screen(self, tmp_path: Path) -> None:
        clock, folder, cases = Clock(), tmp_path / "work", Cases()
        folder.mkdir()
        chars = ("\u0903", "\u1161", "\U0001f3ff", "\U0001f1e9", "\u0301", "\u302e")
        replies = [
            calls("run_command", id=f"c{at}", command=f"true 'a{char * 90}'; touch made-by-tool")
            for at, char in enumerate(chars)
        ]
        chat = make_chat(tmp_path, *replies, says("So it is."), folder=folder)
        async with make_app(chat, tmp_path, clock=clock).run_test() as pilot:
            await _asked(pilot, clock)
            for char in chars:
                with cases.case(char):
                    detail = screen_of(pilot).query_one(Detail)
                    rows = detail.render().plain.split("\n")
                    assert "made-by-tool" in rows[-1]
                    assert max(len(row) for row in rows) <= detail.size.width
                before = _question(pilot)
                await pilot.press("escape")
                if char != chars[-1]:
                    await wait_until(pilot, lambda old=before: _question(pilot) not in (None, old))
                    await listens(pilot, clock)
        cases.finish()

    async def test_what_fits_needs_no_scrolling(self, tmp_path: Path) -> None:
        clock = Clock()
        async with make_app(asking_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
            await _asked(pilot, clock)
            assert "more line" not in shown(pilot)
            assert "unseen" not in shown(pilot)


async def test_a_question_that_was_taken_back_answers_nothing_later(tmp_path: Path) -> None:
    clock, gate = Clock(), asyncio.Event()
    chat = asking_chat(tmp_path, before=[gate])
    async with make_app(chat, tmp_path, clock=clock).run_test() as pilot:
        await type_line(pilot, "do it")
        gate.set()
        await wait_until(pilot, lambda: _question(pilot))
        await listens(pilot, clock)
        await pilot.press("5", "enter", "ctrl+c")
        await idle(pilot)
        await wait_until(pilot, lambda: not _question(pilot))
        await pilot.press("x")
        assert draft(pilot) == "x"
        assert not _ran(tmp_path)
