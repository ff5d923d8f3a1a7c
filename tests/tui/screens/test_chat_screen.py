"""The chat screen with a real chat behind it: what is typed, shown, queued, stopped, asked."""

from __future__ import annotations

import asyncio
import gc
import tomllib
from pathlib import Path

import pytest
from textual import events

from rolling_chat.messages import Ending, Usage
from rolling_chat.providers.protocol import ErrorKind, ProviderError, Retrying, TextDelta
from rolling_chat.tui.dialogs.help_screen import HelpScreen
from rolling_chat.tui.widgets.gauge import Gauge
from rolling_chat.tui.widgets.keys import KeyBar
from rolling_chat.tui.widgets.prompt_box import PromptBox
from rolling_chat.tui.widgets.question import Question
from rolling_chat.tui.widgets.transcript import Transcript
from rolling_chat.tui.widgets.waiting import WaitingList
from tests.support.tui import (
    COMMAND,
    Clock,
    ScriptedProvider,
    asking_chat,
    busy,
    calls,
    draft,
    idle,
    listens,
    make_app,
    make_chat,
    make_paths,
    reads,
    says,
    screen_of,
    shown,
    tells,
    thinks,
    transcript,
    type_line,
    wait_until,
)


async def test_what_is_sent_and_what_is_answered_is_read_on_the_screen(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("Because `strip()` ", "eats **tabs**."))
    async with make_app(chat, tmp_path).run_test() as pilot:
        await type_line(pilot, "Why?")
        await idle(pilot)
        await tells(pilot, "❯ Why?", "Because strip() eats tabs.")
        assert draft(pilot) == ""
        await reads(pilot, "done in")


async def test_the_answer_streams_in_while_it_comes(tmp_path: Path) -> None:
    gate = asyncio.Event()
    chat = make_chat(tmp_path, [TextDelta("First half."), gate, *says("First half.", " Second.")[1:]])
    async with make_app(chat, tmp_path).run_test() as pilot:
        await type_line(pilot, "go")
        await reads(pilot, "▍ First half.", "answering", "esc stop")
        gate.set()
        await idle(pilot)
        await tells(pilot, "First half. Second.")


async def test_keys_typed_before_anything_is_loaded_are_kept(tmp_path: Path) -> None:
    chat = make_chat(tmp_path)
    async with make_app(chat, tmp_path).run_test() as pilot:
        await pilot.press(*"hello")
        assert draft(pilot) == "hello"


async def test_a_first_message_is_sent_without_a_key(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("At once."))
    async with make_app(chat, tmp_path, first="go").run_test() as pilot:
        await tells(pilot, "At once.")


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter"])
async def test_a_newline_key_makes_a_line_and_the_box_grows(tmp_path: Path, key: str) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        await pilot.press("a", key, "b", key, "c")
        assert draft(pilot) == "a\nb\nc"
        await wait_until(pilot, lambda: pilot.app.screen.query_one(PromptBox).size.height == 3)
        await reads(pilot, f"{key} newline")


async def test_the_box_grows_to_six_rows_and_no_further(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        pilot.app.screen.query_one(PromptBox).put("line\n" * 40)
        await wait_until(pilot, lambda: pilot.app.screen.query_one(PromptBox).size.height == 6)


async def test_up_and_down_walk_the_history_and_come_back_to_the_draft(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("1"), says("2"))
    async with make_app(chat, tmp_path).run_test() as pilot:
        for text in ("first", "second"):
            await type_line(pilot, text)
            await idle(pilot)
        await pilot.press(*"new")
        seen = []
        for key in ("up", "up", "up", "down", "down", "down"):
            await pilot.press(key)
            seen.append(draft(pilot))
        assert seen == ["second", "first", "first", "second", "new", "new"]


async def test_the_history_outlives_the_program(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path, says("1")), tmp_path).run_test() as pilot:
        await type_line(pilot, "remember\nme")
        await idle(pilot)
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        await pilot.press("up")
        assert draft(pilot) == "remember\nme"


async def test_in_a_draft_of_many_lines_up_moves_the_cursor_first(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("1"))
    async with make_app(chat, tmp_path).run_test() as pilot:
        await type_line(pilot, "before")
        await idle(pilot)
        await pilot.press("a", "ctrl+j", "b", "up")
        assert draft(pilot) == "a\nb"
        await pilot.press("up")
        assert draft(pilot) == "before"


async def test_pasted_control_sequences_do_not_enter_the_box(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        pilot.app.screen.query_one(PromptBox).post_message(events.Paste("\x1b[31mred\r\nline\x07"))
        await wait_until(pilot, lambda: draft(pilot) == "[31mred\nline")


async def test_the_price_of_the_draft_is_shown_and_moves_the_gauge(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        await pilot.press(*"count this please")
        await reads(pilot, "this message +")
        await pilot.press("ctrl+c")
        await wait_until(pilot, lambda: "this message +" not in shown(pilot))


async def test_the_gauge_says_how_full_and_whether_rolling(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path, window=8192), tmp_path).run_test() as pilot:
        await reads(pilot, "/ 8.2k", "rolling: off")
        await type_line(pilot, "/rolling-context on")
        await reads(pilot, "rolling: on")


async def test_the_gauge_moves_while_a_reply_streams(tmp_path: Path) -> None:
    gate = asyncio.Event()
    chat = make_chat(tmp_path, [TextDelta("word " * 400), gate, *says("word " * 400)[1:]], window=8192)
    async with make_app(chat, tmp_path).run_test() as pilot:
        await reads(pilot, "/ 8.2k")
        gauge = pilot.app.screen.query_one(Gauge)
        before = gauge.render().plain
        await type_line(pilot, "go")
        await reads(pilot, "answering")
        await wait_until(pilot, lambda: gauge.render().plain.count("▄") > before.count("▄"))
        gate.set()
        await idle(pilot)


async def test_thinking_is_one_line_until_it_is_opened(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, thinks("tabs are white space", says("So.")))
    async with make_app(chat, tmp_path).run_test() as pilot:
        await type_line(pilot, "why")
        await idle(pilot)
        await tells(pilot, "▸ thought · 20 characters")
        assert "tabs are white space" not in transcript(pilot)
        await pilot.press("ctrl+o")
        await tells(pilot, "tabs are white space")
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: "tabs are white space" not in transcript(pilot))


async def test_esc_stops_and_what_came_is_kept(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, [TextDelta("Half an answer"), asyncio.Event()])
    async with make_app(chat, tmp_path).run_test() as pilot:
        await type_line(pilot, "go")
        await tells(pilot, "Half an answer")
        await pilot.press("escape")
        await idle(pilot)
        await tells(pilot, "■ stopped here")
        assert chat.session.messages[-1].ending is Ending.CANCELLED


async def test_a_failed_request_is_one_line_and_the_draft_goes_on(tmp_path: Path) -> None:
    refused = ProviderError(ErrorKind.BAD_KEY, "The key was refused: check OPENAI_API_KEY.")
    chat = make_chat(tmp_path, [refused], says("Now it works."))
    async with make_app(chat, tmp_path).run_test() as pilot:
        await type_line(pilot, "go")
        await idle(pilot)
        await tells(pilot, "! The key was refused: check OPENAI_API_KEY.")
        await type_line(pilot, "again")
        await idle(pilot)
        await tells(pilot, "Now it works.")


async def test_a_retry_is_said(tmp_path: Path) -> None:
    gate = asyncio.Event()
    chat = make_chat(tmp_path, [Retrying(1, 300.0, 800.0, "The model is overloaded."), gate, *says("ok")])
    async with make_app(chat, tmp_path).run_test() as pilot:
        await type_line(pilot, "go")
        await reads(pilot, "The model is overloaded; trying again in ")
        gate.set()
        await idle(pilot)


class TestWhileTheModelWorks:
    """Messages, commands and keys while a turn runs."""

    async def test_what_waits_is_sent_after_a_turn_without_tools(self, tmp_path: Path) -> None:
        gate = asyncio.Event()
        provider = ScriptedProvider([[TextDelta("one"), gate, *says("one")[1:]], says("two"), says("three")])
        chat = make_chat(tmp_path, provider=provider)
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "first")
            await busy(pilot)
            await type_line(pilot, "second")
            await pilot.press(*"third")
            await reads(pilot, "enter send now  alt+enter send after")
            await pilot.press("alt+enter")
            await reads(pilot, "↳ with the next result: second", "↳ after this turn: third", "up take back")
            gate.set()
            await wait_until(pilot, lambda: len(provider.requests) == 3)
            await idle(pilot)
            said = [message.text for message in chat.session.messages]
            assert said == ["first", "one", "second", "two", "third", "three"]
            await wait_until(pilot, lambda: not pilot.app.screen.query_one(WaitingList).size.height)

    async def test_what_waits_goes_in_with_the_next_result(self, tmp_path: Path) -> None:
        gate = asyncio.Event()
        scripts = [[TextDelta("I look."), gate, *calls("list_files")], says("Tabs, then."), says("Done.")]
        chat = make_chat(tmp_path, *scripts)
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "indent it")
            await tells(pilot, "I look.")
            await type_line(pilot, "with tabs")
            await pilot.press(*"then commit", "alt+enter")
            gate.set()
            await tells(pilot, "Done.")
            await idle(pilot)
            roles = [message.role for message in chat.session.messages]
            assert roles == ["user", "assistant", "tool", "user", "assistant", "user", "assistant"]
            assert [turn.message.text for turn in chat.session.history.turns()] == [
                "indent it",
                "with tabs",
                "then commit",
            ]
            await tells(pilot, "❯ with tabs")
            assert not chat.waiting

    async def test_stopping_gives_back_all_that_waits_above_what_is_typed(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, [TextDelta("One"), asyncio.Event()])
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "first")
            await tells(pilot, "One")
            for text in ("second", "third"):
                await type_line(pilot, text)
            await pilot.press(*"fourth", "escape")
            await wait_until(pilot, lambda: draft(pilot) == "second\nthird\nfourth")
            await idle(pilot)
            assert not chat.waiting

    async def test_up_takes_back_the_newest_and_then_the_one_before_it(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, [TextDelta("one"), asyncio.Event()])
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "first")
            await busy(pilot)
            for text in ("second", "third", "fourth", "fifth"):
                await type_line(pilot, text)
            await reads(pilot, "third (+1)", "up take back")
            await pilot.press("up")
            await wait_until(pilot, lambda: draft(pilot) == "fifth")
            await pilot.press("up")
            await wait_until(pilot, lambda: draft(pilot) == "fourth\nfifth")
            await pilot.press("!", "up", "up")
            assert [message.text for message in chat.waiting] == ["second", "third"]
            await pilot.press("escape")
            await idle(pilot)

    async def test_a_message_that_cannot_be_sent_comes_back_above_what_waits(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await reads(pilot, "rolling: off")
            chat = screen_of(pilot).chat
            chat.waiting.add("later", after_turn=True)
            chat._runtime.store.close()
            await type_line(pilot, "now")
            await wait_until(pilot, lambda: draft(pilot) == "now\nlater")

    async def test_a_command_that_cannot_run_now_says_so(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, [TextDelta("one"), asyncio.Event()])
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "first")
            await busy(pilot)
            await type_line(pilot, "/new")
            await tells(pilot, "/new waits until the answer is complete")
            await type_line(pilot, "/rolling-context status")
            await tells(pilot, "Rolling context is off")
            await pilot.press("escape")
            await idle(pilot)

    async def test_quitting_ends_the_turn_in_order(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, [TextDelta("Half an answer"), asyncio.Event()])
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "go")
            await tells(pilot, "Half an answer")
            await pilot.press("ctrl+q")
            await wait_until(pilot, lambda: not pilot.app.is_running)
        assert [message.text for message in chat.session.messages] == ["go", "Half an answer"]
        assert not chat.busy


class TestCtrlC:
    """Copies, clears, stops, quits: in that order."""

    async def test_it_clears_the_draft_before_it_stops(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, [TextDelta("one"), asyncio.Event()])
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "go")
            await tells(pilot, "one")
            await pilot.press("x", "ctrl+c")
            assert draft(pilot) == ""
            assert screen_of(pilot).state.busy
            await pilot.press("ctrl+c")
            await idle(pilot)
            await tells(pilot, "■ stopped here")

    async def test_twice_quits(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path, clock=Clock()).run_test() as pilot:
            await pilot.press("ctrl+c")
            await reads(pilot, "ctrl+c again quits")
            await pilot.press("ctrl+c")
            await wait_until(pilot, lambda: not pilot.app.is_running)

    async def test_the_second_one_must_come_soon(self, tmp_path: Path) -> None:
        clock = Clock()
        async with make_app(make_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
            for _ in range(2):
                await pilot.press("ctrl+c")
                await reads(pilot, "ctrl+c again quits")
                clock.pass_(5)
                await wait_until(pilot, lambda: "ctrl+c again quits" not in shown(pilot))
            assert pilot.app.is_running

    async def test_a_selection_is_copied_and_nothing_else_happens(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await pilot.press(*"copy me", "shift+home", "ctrl+c")
            assert pilot.app.clipboard == "copy me"
            assert draft(pilot) == "copy me"

    async def test_text_selected_with_the_mouse_is_copied(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path, says("Hello there")), tmp_path).run_test() as pilot:
            await type_line(pilot, "hi")
            await idle(pilot)
            await reads(pilot, "Hello there")
            row = shown(pilot).splitlines().index(next(s for s in shown(pilot).splitlines() if "Hello" in s))
            await pilot.mouse_down(offset=(3, row))
            await pilot.hover(offset=(7, row))
            await pilot.mouse_up(offset=(7, row))
            await pilot.press("ctrl+c")
            assert pilot.app.clipboard == "Hello"


class TestLeave:
    """A tool asks; a person who was typing answers nothing by accident."""

    async def _asked(self, pilot: object) -> None:
        await type_line(pilot, "do it")
        await wait_until(pilot, lambda: pilot.app.screen.query(Question))
        await pilot.pause()

    async def test_a_click_on_its_line_opens_what_it_did(self, tmp_path: Path) -> None:
        clock = Clock()
        async with make_app(asking_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
            await self._asked(pilot)
            await listens(pilot, clock)
            await pilot.press("enter")
            await idle(pilot)
            await reads(pilot, "⚙", "So it is.")
            line = next(at for at, text in enumerate(shown(pilot).splitlines()) if "⚙" in text)
            await pilot.click(offset=(20, line))
            await reads(pilot, "│ [exit code 0]")

    async def test_enter_gives_permission_once(self, tmp_path: Path) -> None:
        clock = Clock()
        async with make_app(asking_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
            await self._asked(pilot)
            await reads(pilot, COMMAND, "asking permission for run_command")
            await listens(pilot, clock)
            await pilot.press("enter")
            await idle(pilot)
            assert (tmp_path / "work" / "made-by-tool").exists()
            await wait_until(pilot, lambda: not pilot.app.screen.query(Question))
            await pilot.press("z")
            assert draft(pilot) == "z"

    async def test_keys_typed_in_the_grace_go_to_the_draft_and_approve_nothing(self, tmp_path: Path) -> None:
        clock = Clock()
        async with make_app(asking_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
            await self._asked(pilot)
            for key in (*"nay", "space", "y"):
                clock.pass_(0.3)
                await pilot.press(key)
            await pilot.pause()
            assert draft(pilot) == "nay y"
            assert pilot.app.screen.query(Question)
            await pilot.press("backspace")
            await pilot.pause()
            assert draft(pilot) == "nay "
            await pilot.press("escape")
            await idle(pilot)
            assert not (tmp_path / "work" / "made-by-tool").exists()

    async def test_a_pasted_y_is_text(self, tmp_path: Path) -> None:
        clock = Clock()
        async with make_app(asking_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
            await self._asked(pilot)
            await listens(pilot, clock)
            pilot.app.screen.query_one(Question).post_message(events.Paste("y"))
            await wait_until(pilot, lambda: draft(pilot) == "y")
            assert pilot.app.screen.query(Question)
            await pilot.press("escape")
            await idle(pilot)

    @pytest.mark.parametrize(
        "keys", [["4", "enter"], ["down", "down", "down", "enter"], ["up", "up", "enter"], ["escape"]]
    )
    async def test_no_is_no(self, tmp_path: Path, keys: list[str]) -> None:
        clock = Clock()
        async with make_app(asking_chat(tmp_path), tmp_path, clock=clock).run_test() as pilot:
            await self._asked(pilot)
            await listens(pilot, clock)
            await pilot.press(*keys)
            await idle(pilot)
            await tells(pilot, "⊘ run_command", "refused", "So it is.")
            assert not (tmp_path / "work" / "made-by-tool").exists()

    async def test_the_whole_command_can_be_read_and_hides_nothing(self, tmp_path: Path) -> None:
        command = "echo \x1b[8mhidden\x1b[0m\n" + "\n".join(f"echo line {n}" for n in range(60))
        async with make_app(asking_chat(tmp_path, command), tmp_path).run_test() as pilot:
            await self._asked(pilot)
            await reads(pilot, "echo ␛[8mhidden␛[0m")
            await pilot.press("end")
            await reads(pilot, "echo line 59")
            await pilot.press("escape")
            await idle(pilot)

    async def test_ctrl_c_takes_the_question_away_with_the_turn(self, tmp_path: Path) -> None:
        async with make_app(asking_chat(tmp_path), tmp_path).run_test() as pilot:
            await self._asked(pilot)
            await pilot.press("ctrl+c")
            await idle(pilot)
            await wait_until(pilot, lambda: not pilot.app.screen.query(Question))
            await pilot.press("z")
            assert draft(pilot) == "z"
            await tells(pilot, "■ run_command")


class TestTheEndOfTheRoom:
    """A prompt that does not fit, and an answer that was cut."""

    async def test_full_asks_once_and_goes_on_with_rolling_context(self, tmp_path: Path) -> None:
        clock = Clock()
        full = ProviderError(ErrorKind.TOO_LONG, "The prompt is too long for the model.")
        chat = make_chat(tmp_path, says("Hello."), [full], says("It fits now."))
        async with make_app(chat, tmp_path, clock=clock).run_test() as pilot:
            await type_line(pilot, "hello")
            await idle(pilot)
            await type_line(pilot, "go")
            await reads(pilot, "no longer fits")
            await listens(pilot, clock)
            await pilot.press("enter")
            await tells(pilot, "It fits now.")
            await idle(pilot)
            assert chat.session.rolling
        assert tomllib.loads(make_paths(tmp_path).config_file.read_text()) == {"context": {"enabled": True}}

    async def test_esc_leaves_it_as_it_is(self, tmp_path: Path) -> None:
        full = ProviderError(ErrorKind.TOO_LONG, "The prompt is too long for the model.")
        chat = make_chat(tmp_path, says("Hello."), [full])
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "hello")
            await idle(pilot)
            await type_line(pilot, "go")
            await reads(pilot, "no longer fits")
            await pilot.press("escape")
            await wait_until(pilot, lambda: not pilot.app.screen.query(Question))
            assert not chat.session.rolling
            await tells(pilot, "! The prompt is too long for the model.")

    async def test_an_answer_cut_at_its_limit_offers_to_go_on(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, says("The first part", ending=Ending.LENGTH), says("and the second."))
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "go")
            await idle(pilot)
            await tells(pilot, "cut at the answer's limit")
            await reads(pilot, "enter go on")
            await pilot.press("enter")
            await idle(pilot)
            await tells(pilot, "and the second.")


class TestCommands:
    """Slash commands as they are typed."""

    async def test_they_complete_under_ones_fingers(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await pilot.press(*"/ro")
            await pilot.pause()
            await reads(pilot, "/rolling-context [on|off|status|preview|set|undo]")
            await pilot.press("tab")
            assert draft(pilot) == "/rolling-context "

    async def test_enter_runs_the_chosen_one(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path)
        async with make_app(chat, tmp_path).run_test() as pilot:
            await pilot.press(*"/ro", "enter")
            await wait_until(pilot, lambda: chat.session.rolling)
            assert draft(pilot) == ""

    async def test_esc_closes_the_list_and_keeps_the_draft(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await pilot.press(*"/ro", "escape")
            await pilot.pause()
            assert draft(pilot) == "/ro"
            await wait_until(pilot, lambda: "[on|off|status|preview|set|undo]" not in shown(pilot))

    async def test_esc_that_closes_the_list_gives_the_keys_row_back(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await idle(pilot)
            await pilot.press(*"/ro")
            await reads(pilot, "tab complete")
            drafts = screen_of(pilot).drafts
            # it is drawn once more when the draft is counted
            await wait_until(pilot, lambda: drafts._count_timer is None and drafts._counting.idle.is_set())
            await pilot.press("escape")
            await reads(pilot, "enter send")

    async def test_keys_that_come_faster_than_the_list_run_what_was_typed(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            box = screen_of(pilot).query_one(PromptBox)
            for key, character in [*((char, char) for char in "/help"), ("enter", None), ("z", "z")]:
                box.post_message(events.Key("slash" if key == "/" else key, character))
            await wait_until(pilot, lambda: isinstance(pilot.app.screen, HelpScreen))
            assert draft(pilot) == "z"  # typed after enter: the next message, not lost and not mixed in

    async def test_an_unknown_one_names_the_nearest(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await type_line(pilot, "/mdoel")
            await tells(pilot, "There is no command /mdoel; did you mean /model?")

    async def test_a_path_is_a_message(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, says("I see."))
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "/etc/hosts is missing")
            await idle(pilot)
            assert chat.session.messages[0].text == "/etc/hosts is missing"

    async def test_context_is_a_table_of_the_next_request(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, says("An answer to remember."))
        async with make_app(chat, tmp_path).run_test(size=(100, 40)) as pilot:
            await type_line(pilot, "a question")
            await idle(pilot)
            await type_line(pilot, "/context")
            await reads(pilot, "The next request")
            for words in ("system prompt", "reserve for the answer", "a question", "An answer to remember."):
                await reads(pilot, words)
            await pilot.press("escape")
            await wait_until(pilot, lambda: "The next request" not in shown(pilot))

    async def test_model_is_picked_from_a_list_that_typing_narrows(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path)
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "/model")
            await reads(pilot, "type to narrow")
            await pilot.press(*"demo/offline")
            await pilot.pause()
            await pilot.press("enter")
            await wait_until(pilot, lambda: chat.session.model == "demo/offline")
            await wait_until(pilot, lambda: "demo/offline ·" in shown(pilot).splitlines()[0])

    async def test_what_is_typed_is_chosen_before_what_only_holds_it(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path)
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "/model")
            await reads(pilot, "● openai/gpt-4o-mini")
            await pilot.press(*"gpt-4o")
            await pilot.pause()
            await pilot.press("enter")
            await wait_until(pilot, lambda: chat.session.model == "gpt-4o")

    @pytest.mark.parametrize("size", [(80, 24), (60, 12), (120, 40)])
    async def test_a_long_list_fills_its_frame(self, tmp_path: Path, size: tuple[int, int]) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test(size=size) as pilot:
            await type_line(pilot, "/model")
            await reads(pilot, "type to narrow", "gpt-3.5-tur")
            rows = shown(pilot).splitlines()
            last = next(at for at, row in enumerate(rows) if "enter choose" in row)
            await wait_until(pilot, lambda: "gpt" in shown(pilot).splitlines()[last - 1])

    async def test_resume_and_new_change_the_conversation(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, says("of the first"))
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "one")
            await idle(pilot)
            first = chat.session.info.id
            await type_line(pilot, "/new")
            await wait_until(pilot, lambda: "of the first" not in transcript(pilot))
            await type_line(pilot, f"/resume {first}")
            await tells(pilot, "of the first")
            await type_line(pilot, "/resume nothing-like-this")
            await tells(pilot, "! ")
            assert chat.session.info.id == first

    async def test_undo_redraws_the_branch_and_gives_the_text_back(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, says("answer one"), says("answer two"), says("answer three"))
        async with make_app(chat, tmp_path).run_test() as pilot:
            for text in ("first", "second"):
                await type_line(pilot, text)
                await idle(pilot)
            await type_line(pilot, "/undo")
            await wait_until(pilot, lambda: draft(pilot) == "second")
            assert "answer two" not in transcript(pilot)
            await tells(pilot, "/redo brings it back")
            await pilot.press("!", "enter")
            await idle(pilot)
            assert [message.text for message in chat.session.messages] == [
                "first", "answer one", "second!", "answer three",
            ]  # fmt: skip

    async def test_what_undo_gives_back_is_typed_over_by_the_next_command(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path)
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "first question")
            await idle(pilot)
            await type_line(pilot, "/undo")
            await wait_until(pilot, lambda: draft(pilot) == "first question")
            await pilot.press(*"/redo", "enter")
            await wait_until(pilot, lambda: len(chat.session.messages) == 2)
            assert draft(pilot) == ""

    async def test_undo_stops_the_answer_first(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, says("one"), [TextDelta("half of"), asyncio.Event()])
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "first")
            await idle(pilot)
            await type_line(pilot, "second")
            await tells(pilot, "half of")
            await type_line(pilot, "/undo")
            await wait_until(pilot, lambda: draft(pilot) == "second")
            assert [message.text for message in chat.session.messages] == ["first", "one"]
            assert [left.messages for left in chat.session.history.branches()] == [4]
            assert not screen_of(pilot).state.busy

    async def test_retry_answers_anew(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, says("the old answer"), says("the new answer"))
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "why?")
            await idle(pilot)
            await type_line(pilot, "/retry")
            await tells(pilot, "the new answer")
            await idle(pilot)
            assert "the old answer" not in transcript(pilot)
            assert transcript(pilot).count("why?") == 1

    async def test_search_lands_on_the_place_in_a_long_result(self, tmp_path: Path) -> None:
        lines = "\n\n".join(f"line {n}" + (" needle" if n == 120 else "") for n in range(200))
        chat = make_chat(tmp_path, says(lines), says("Short."))
        async with make_app(chat, tmp_path).run_test() as pilot:
            for text in ("go", "and?"):
                await type_line(pilot, text)
                await idle(pilot)
            await reads(pilot, "Short.")
            assert "needle" not in shown(pilot)
            await type_line(pilot, "/search needle")
            await reads(pilot, "Found: needle")
            await pilot.press("enter")
            await reads(pilot, "line 120 needle", "ctrl+end newest")

    async def test_search_opens_what_is_folded(self, tmp_path: Path) -> None:
        folder = tmp_path / "work"
        folder.mkdir()
        (folder / "needle.txt").touch()
        chat = make_chat(tmp_path, calls("list_files"), says("Listed."), folder=folder)
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "list")
            await idle(pilot)
            await tells(pilot, "Listed.")
            assert "needle" not in transcript(pilot)
            await type_line(pilot, "/search needle")
            await reads(pilot, "Found: needle")
            await pilot.press("enter")
            await tells(pilot, "needle.txt")

    async def test_a_theme_is_in_force_at_once_and_kept(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path, says("text")), tmp_path).run_test() as pilot:
            await type_line(pilot, "hi")
            await idle(pilot)
            before = pilot.app.screen.query_one(Transcript).document.look
            await type_line(pilot, "/theme daylight")
            await wait_until(pilot, lambda: pilot.app.theme == "daylight")
            await wait_until(pilot, lambda: pilot.app.screen.query_one(Transcript).document.look != before)
            assert 'theme = "daylight"' in (tmp_path / "config.toml").read_text()

    async def test_copy_takes_the_last_answer(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path, says("**copied** as written")), tmp_path).run_test() as pilot:
            await type_line(pilot, "hi")
            await idle(pilot)
            await type_line(pilot, "/copy")
            await wait_until(pilot, lambda: pilot.app.clipboard == "**copied** as written")

    async def test_quit_leaves(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await type_line(pilot, "/quit")
            await wait_until(pilot, lambda: not pilot.app.is_running)


async def test_whoever_sends_sees_what_was_sent(tmp_path: Path) -> None:
    lines = "\n\n".join(f"line {n}" for n in range(60))
    async with make_app(make_chat(tmp_path, says(lines), says("Seen.")), tmp_path).run_test() as pilot:
        await type_line(pilot, "go")
        await idle(pilot)
        await pilot.press("pageup", "pageup")
        await pilot.pause()
        await reads(pilot, "ctrl+end newest")
        await type_line(pilot, "and?")
        await idle(pilot)
        await reads(pilot, "Seen.")
        await wait_until(pilot, lambda: "ctrl+end newest" not in shown(pilot))


@pytest.mark.parametrize("text", ["/", "one\ntwo\nthree\nfour"])
async def test_in_the_smallest_window_the_last_row_is_never_pushed_out(tmp_path: Path, text: str) -> None:
    async with make_app(make_chat(tmp_path, window=8192), tmp_path).run_test(size=(40, 10)) as pilot:
        screen_of(pilot).query_one(PromptBox).put(text)
        await reads(pilot, "/ 8.2k")
        await pilot.pause()
        keys = screen_of(pilot).query_one(KeyBar)
        assert keys.region.bottom == 10
        assert keys.size.width == 38  # no scroll bar of the screen's beside it


@pytest.mark.parametrize("size", [(39, 24), (80, 9), (10, 3), (1, 1)])
async def test_a_terminal_too_small_says_so(tmp_path: Path, size: tuple[int, int]) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test(size=size) as pilot:
        await wait_until(pilot, lambda: not pilot.app.screen.query_one(Transcript).display)
        await pilot.resize_terminal(80, 24)
        await reads(pilot, "rolling-chat")


@pytest.mark.parametrize(("key", "row"), [("ctrl+f", "find:"), ("ctrl+r", "history:")])
async def test_a_terminal_too_small_shows_nothing_else(tmp_path: Path, key: str, row: str) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        await idle(pilot)
        await pilot.press(key)
        await reads(pilot, row)
        await pilot.resize_terminal(30, 9)
        await reads(pilot, "too small")
        await wait_until(pilot, lambda: row not in shown(pilot))
        await pilot.resize_terminal(80, 24)
        await reads(pilot, row)


async def test_a_terminal_that_was_too_small_for_a_while_takes_keys_again(tmp_path: Path) -> None:
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        await pilot.resize_terminal(30, 5)
        await reads(pilot, "too small")
        await pilot.resize_terminal(80, 24)
        await wait_until(pilot, lambda: pilot.app.screen.query_one(PromptBox).has_focus)
        await pilot.press("a")
        assert draft(pilot) == "a"


@pytest.mark.parametrize("size", [(40, 10), (60, 16), (80, 24), (160, 50), (400, 100)])
async def test_every_size_shows_prompt_gauge_and_keys(tmp_path: Path, size: tuple[int, int]) -> None:
    async with make_app(make_chat(tmp_path, window=8192), tmp_path).run_test(size=size) as pilot:
        await reads(pilot, "/ 8.2k", "enter send", "❯")
        rows = shown(pilot).splitlines()
        assert rows[-1].lstrip().startswith("enter send")
        assert any("❯" in row for row in rows[-4:])


async def test_usage_and_cost_are_those_of_the_session(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("dear", usage=Usage(1000, 50, cost=0.14)))
    async with make_app(chat, tmp_path).run_test() as pilot:
        await type_line(pilot, "hi")
        await idle(pilot)
        await reads(pilot, "$0.14")


async def test_work_that_is_dropped_before_it_began_leaves_nothing_over(tmp_path: Path) -> None:
    """As when a timer asks for it while the program is being left: a coroutine would complain."""
    async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
        screen = screen_of(pilot)
        await idle(pilot)
        screen.action_context()
        screen.workers.cancel_node(screen)
        gc.collect()  # what is left over says so when it goes
        await pilot.pause()
        assert pilot.app.screen is screen  # and nothing was opened
