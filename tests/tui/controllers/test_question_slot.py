"""A question and a draft beside it: what is typed for the one never answers the other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.events import Paste
from textual.pilot import Pilot

from rolling_chat.agent.questions import full_question
from rolling_chat.providers.protocol import ErrorKind, ProviderError
from rolling_chat.settings.schema import ContextSettings, Settings
from rolling_chat.tui.widgets.question import Question
from tests.support.cases import Cases
from tests.support.tui import (
    COMMAND,
    MODEL,
    Clock,
    ScriptedProvider,
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
    tells,
    transcript,
    type_line,
    wait_until,
)

SIZES = ((80, 24), (60, 20), (60, 16), (40, 15), (40, 10))
FULL = ProviderError(ErrorKind.TOO_LONG, "The prompt is too long for the model.")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """What the tool makes that asks for leave."""
    return tmp_path / "work" / "made-by-tool"


def _is_made(made: Path) -> bool:
    return made.exists()


def _questions(pilot: Pilot[None]) -> list[Question]:
    return list(screen_of(pilot).query(Question))


async def _asked(pilot: Pilot[None], clock: Clock) -> None:
    await type_line(pilot, "do it")
    await wait_until(pilot, lambda: _questions(pilot))
    await listens(pilot, clock)


async def test_a_letter_of_a_draft_answers_nothing_however_long_one_thinks(made: Path) -> None:
    clock = Clock()
    async with make_app(asking_chat(made.parents[1]), made.parents[1], clock=clock).run_test() as pilot:
        await _asked(pilot, clock)
        await pilot.press(*"well, ")
        clock.pass_(5)
        await reads(pilot, "tab answers", "❯ well,", "tab answer  esc no  enter send now")
        await pilot.press(*"any")
        assert draft(pilot) == "well, any"
        assert _questions(pilot)
        await pilot.press("ctrl+c")
        assert draft(pilot) == ""
        await listens(pilot, clock)
        await pilot.press("enter")
        await idle(pilot)
        assert _is_made(made)


async def test_a_question_that_comes_amid_a_draft_leaves_the_keys_to_it_until_tab(made: Path) -> None:
    clock, gate = Clock(), asyncio.Event()
    chat = asking_chat(made.parents[1], before=[gate])
    async with make_app(chat, made.parents[1], clock=clock).run_test() as pilot:
        await type_line(pilot, "do it")
        await pilot.press(*"half a thought")
        gate.set()
        await wait_until(pilot, lambda: _questions(pilot))
        clock.pass_(5)
        await reads(pilot, "tab answers")
        await pilot.press("y")
        assert draft(pilot) == "half a thoughty"
        assert _questions(pilot)
        await pilot.press("tab")
        await listens(pilot, clock)
        await pilot.press("enter")
        await idle(pilot)
        assert _is_made(made)
        assert draft(pilot) == "half a thoughty"


async def test_escape_refuses_also_from_within_a_draft_which_stays(made: Path) -> None:
    clock = Clock()
    async with make_app(asking_chat(made.parents[1]), made.parents[1], clock=clock).run_test() as pilot:
        await _asked(pilot, clock)
        await pilot.press(*"but", "escape")
        await idle(pilot)
        await tells(pilot, "refused", "So it is.")
        assert draft(pilot) == "but"
        assert not _is_made(made)


async def test_while_something_is_found_the_hints_are_those_of_finding(made: Path) -> None:
    clock = Clock()
    async with make_app(asking_chat(made.parents[1]), made.parents[1], clock=clock).run_test() as pilot:
        await _asked(pilot, clock)
        await reads(pilot, "1 Once", "enter answer")
        await pilot.press("ctrl+f")
        await reads(pilot, "previous, next", "tab answers")
        await pilot.press("escape")
        await listens(pilot, clock)
        await pilot.press("escape")
        await idle(pilot)
        assert not _is_made(made)


@pytest.mark.parametrize("command", ["/undo", "/new"])
async def test_a_command_leaves_the_offer_to_roll_and_enter_is_the_commands(
    tmp_path: Path, command: str
) -> None:
    clock = Clock()
    chat = make_chat(tmp_path, says("Hello."), [FULL], says("It fits."))
    async with make_app(chat, tmp_path, clock=clock).run_test() as pilot:
        first = chat.session.info.id
        await type_line(pilot, "hello")
        await idle(pilot)
        await type_line(pilot, "go")
        await reads(pilot, "no longer fits")
        await listens(pilot, clock)
        await pilot.press(*command)
        clock.pass_(5)
        await pilot.press("enter")
        await wait_until(pilot, lambda: len(chat.session.messages) == (0 if command == "/new" else 2))
        await wait_until(pilot, lambda: not _questions(pilot))
        await idle(pilot)
        assert not chat.session.rolling
        assert (chat.session.info.id != first) == (command == "/new")
        assert "It fits." not in transcript(pilot)


async def test_a_retry_leaves_the_offer_and_asks_its_own_question(made: Path) -> None:
    clock, folder = Clock(), made.parents[1]
    chat = asking_chat(folder, first=[says("Hello."), [FULL]])
    async with make_app(chat, folder, clock=clock).run_test() as pilot:
        await type_line(pilot, "hello")
        await idle(pilot)
        await type_line(pilot, "go")
        await reads(pilot, "no longer fits")
        await type_line(pilot, "/retry")
        await reads(pilot, COMMAND, "asking permission")
        await wait_until(pilot, lambda: len(_questions(pilot)) == 1)
        await listens(pilot, clock)
        await pilot.press("enter")
        await idle(pilot)
        assert _is_made(made)
        await wait_until(pilot, lambda: not _questions(pilot))


async def test_a_question_that_is_taken_back_before_it_is_drawn_is_gone(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        await idle(pilot)
        asked = asyncio.create_task(screen_of(pilot)._asking.ask(full_question()))
        await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait([asked])
        await wait_until(pilot, lambda: not _questions(pilot))
        await pilot.press("z")
        assert draft(pilot) == "z"


async def test_a_second_question_waits_for_the_answer_to_the_first(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(make_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
        await idle(pilot)
        asked = [asyncio.create_task(screen_of(pilot)._asking.ask(full_question())) for _ in range(2)]
        await wait_until(pilot, lambda: _questions(pilot))
        await listens(pilot, clock)
        await pilot.press("enter")
        await wait_until(pilot, asked[0].done)
        assert not asked[1].done()
        await wait_until(pilot, lambda: _questions(pilot) == [screen_of(pilot).focused])
        await pilot.press("escape")
        await wait_until(pilot, asked[1].done)
        assert [task.result().value for task in asked] == ["roll", "cancel"]


@pytest.mark.parametrize("text", ["", "well"])
async def test_from_the_find_bar_too_tab_answers(made: Path, text: str) -> None:
    clock = Clock()
    async with make_app(asking_chat(made.parents[1]), made.parents[1], clock=clock).run_test() as pilot:
        await _asked(pilot, clock)
        await pilot.press(*text, "ctrl+f", *"do")
        await reads(pilot, "tab answers", "find: do", "enter next")
        await pilot.press("tab")
        await listens(pilot, clock)
        await pilot.press("enter")
        await idle(pilot)
        assert _is_made(made)
        assert draft(pilot) == text


@pytest.mark.parametrize("writes", ["commands", "lines", "finds"])
async def test_however_few_rows_there_are_the_draft_the_gauge_and_the_keys_stay(
    tmp_path: Path, writes: str
) -> None:
    clock, cases, settings = Clock(), Cases(), Settings(model=MODEL, context=ContextSettings(enabled=True))
    provider = ScriptedProvider([*[says("So. " * 200)] * 3, says("They talked.")])
    chat = make_chat(tmp_path, provider=provider, settings=settings, folder=tmp_path)
    for number in range(3):
        async for _ in chat.send(f"What of {number}?"):
            pass
    chat.session.summaries.take(await chat.session.summaries.propose())
    provider.replies.append(calls("run_command", command="echo " + "a word or two " * 60))
    async with make_app(chat, tmp_path, clock=clock).run_test(size=SIZES[0]) as pilot:
        await reads(pilot, " / 128k", "Older messages in this")
        await _asked(pilot, clock)
        match writes:
            case "commands":
                await pilot.press("space", "backspace", "/")
                written = ("tab complete", "/rolling-context")
            case "lines":
                written = ("tab answer  esc no", "line")
            case _:
                await pilot.press("ctrl+f", *"word")
                written = ("find: word", "enter next")
        for size in SIZES:
            with cases.case(size):
                if writes == "lines":  # they are pasted into a screen of this size
                    screen_of(pilot).prompt.put("")
                await pilot.resize_terminal(*size)
                if writes == "lines":
                    pilot.app.screen.post_message(Paste("\n".join("line" for _ in range(9))))
                await reads(pilot, *written)
                await reads(pilot, " / 128k", "Allow run_command?", "echo a word", "asking")
                box = screen_of(pilot).prompt.region
                assert 0 < box.height < size[1] - box.y
    cases.finish()


async def test_a_question_that_comes_while_something_is_found_leaves_the_keys_there_until_tab(
    made: Path,
) -> None:
    clock, gate = Clock(), asyncio.Event()
    chat = asking_chat(made.parents[1], before=[gate])
    async with make_app(chat, made.parents[1], clock=clock).run_test() as pilot:
        await type_line(pilot, "do it")
        await pilot.press("ctrl+f", *"do")
        gate.set()
        await wait_until(pilot, lambda: _questions(pilot))
        clock.pass_(5)
        await reads(pilot, "tab answers", "previous, next")
        await pilot.press("y")
        await reads(pilot, "find: doy")
        assert draft(pilot) == ""
        await pilot.press("tab")
        await listens(pilot, clock)
        await reads(pilot, "1 Once", "enter answer")
        await pilot.press("enter")
        await idle(pilot)
        assert _is_made(made)
        await reads(pilot, "previous, next")
        await pilot.press("z")
        await reads(pilot, "find: doyz")
        assert draft(pilot) == ""


async def test_what_is_written_at_a_question_beside_a_search_answers_nothing(made: Path) -> None:
    clock = Clock()
    async with make_app(asking_chat(made.parents[1]), made.parents[1], clock=clock).run_test() as pilot:
        await _asked(pilot, clock)
        await pilot.press("ctrl+f", "tab")
        await listens(pilot, clock)
        await pilot.press("o")
        clock.pass_(5)
        await reads(pilot, "tab answers", "❯ o", "tab answer  esc close find")
        await pilot.press("y")
        assert draft(pilot) == "oy"
        assert _questions(pilot)


async def test_a_search_of_the_history_keeps_its_keys_from_a_question(made: Path) -> None:
    clock, gate = Clock(), asyncio.Event()
    chat = asking_chat(made.parents[1], before=[gate])
    async with make_app(chat, made.parents[1], clock=clock).run_test() as pilot:
        await type_line(pilot, "do it")
        await pilot.press("ctrl+r")
        gate.set()
        await wait_until(pilot, lambda: _questions(pilot))
        clock.pass_(5)
        await pilot.press(*"do")
        await reads(pilot, "history: do", "❯ do it", "tab answers")
