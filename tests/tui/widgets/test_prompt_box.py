"""The prompt box in a real app: folded pastes, readline's keys, the search, completion."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from rolling_chat.process_identity import Process
from rolling_chat.providers.protocol import TextDelta
from rolling_chat.tui.drafts.pastes import drawn
from rolling_chat.tui.widgets.prompt_box import PromptBox
from rolling_chat.tui.widgets.question import Question
from rolling_chat.tui.widgets.transcript import Transcript
from tests.support.tui import (
    ScriptedProvider,
    busy,
    calls,
    draft,
    idle,
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

LOG = "".join(f"line {number} of a log with some words in it\n" for number in range(10_000))
UNDO = "ctrl+underscore"


def box(pilot: Pilot[None]) -> PromptBox:
    return screen_of(pilot).prompt


def seen(pilot: Pilot[None]) -> str:
    """What stands in the box, as it is drawn."""
    return drawn(draft(pilot))


async def paste(pilot: Pilot[None], text: str) -> None:
    box(pilot).post_message(events.Paste(text))
    await pilot.pause()


async def counts(pilot: Pilot[None]) -> None:
    """Wait until drafts can be priced."""
    await reads(pilot, "~")


class TestFoldedPastes:
    """One token for ten thousand lines."""

    async def test_it_is_one_token_with_its_price_and_is_sent_whole(self, tmp_path: Path) -> None:
        provider = ScriptedProvider([says("Long.")])
        chat = make_chat(tmp_path, provider=provider)
        async with make_app(chat, tmp_path).run_test() as pilot:
            await counts(pilot)
            await pilot.press(*"see ")
            await paste(pilot, LOG)
            await pilot.press(*" ok")
            assert seen(pilot) == "see [paste 1: 10,000 lines, ~129k tokens] ok"
            await reads(pilot, "[paste 1: 10,000 lines, ~129k tokens]", "+129k tokens")
            await pilot.press("enter")
            await idle(pilot)
            assert chat.session.messages[0].text == f"see {LOG} ok"

    async def test_one_very_long_line_is_folded_too(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await paste(pilot, "word " * 60_000)
            assert seen(pilot).startswith("[paste 1: 300,000 characters")

    @pytest.mark.parametrize(
        ("place", "key", "left"),
        [
            ("end", "backspace", "ab"),
            ("end", "ctrl+w", "ab"),
            ("start", "delete", "ab"),
            ("start", "alt+d", "ab"),
            ("start", "ctrl+k", "a"),
        ],
    )
    async def test_a_key_that_deletes_takes_it_whole(
        self, tmp_path: Path, place: str, key: str, left: str
    ) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await pilot.press("a", "b", "left")
            await paste(pilot, LOG)
            if place == "start":
                await pilot.press("left")
            await pilot.press(key)
            assert draft(pilot) == left
            await pilot.press(UNDO)
            assert box(pilot).draft.whole == f"a{LOG}b"

    async def test_the_cursor_skips_over_it_both_ways(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await pilot.press("a", "b", "left")
            await paste(pilot, LOG)
            await pilot.press("left", "x", "right", "y")
            assert drawn(draft(pilot)).startswith("ax[paste 1:")
            assert drawn(draft(pilot)).endswith("]yb")

    async def test_a_click_and_a_word_move_land_at_its_edge(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await paste(pilot, LOG)
            end = box(pilot).cursor_location
            await pilot.press("ctrl+left")
            assert box(pilot).cursor_location == (0, 0)
            await pilot.press("alt+f")
            assert box(pilot).cursor_location == end
            await pilot.click(PromptBox, offset=(5, 0))
            assert box(pilot).cursor_location in ((0, 0), end)

    async def test_a_part_of_it_cannot_be_selected(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await pilot.press("a")
            await paste(pilot, LOG)
            await pilot.press("shift+left")
            assert box(pilot).selected_text == LOG
            await pilot.press("z")
            assert draft(pilot) == "az"

    async def test_tab_beside_it_unfolds_what_can_be_edited(self, tmp_path: Path) -> None:
        text = "".join(f"line {number}\n" for number in range(40))
        async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(100, 30)) as pilot:
            await paste(pilot, text)
            await reads(pilot, "tab unfold")
            await pilot.press("tab")
            assert draft(pilot) == text
            await pilot.press(UNDO)
            assert seen(pilot).startswith("[paste 1: 40 lines")

    async def test_the_same_paste_once_more_unfolds_it(self, tmp_path: Path) -> None:
        text = "a line\n" * 20
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await paste(pilot, text)
            await paste(pilot, text)
            assert draft(pilot) == text

    async def test_what_is_too_long_stays_folded_and_says_where_it_can_be_edited(
        self, tmp_path: Path
    ) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await paste(pilot, LOG)
            await pilot.press("tab")
            assert seen(pilot).startswith("[paste 1: 10,000 lines")
            await tells(pilot, "ctrl+x ctrl+e opens it in your editor")

    async def test_undo_and_redo_bring_it_away_and_back(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await pilot.press(*"one ")
            await paste(pilot, LOG)
            await paste(pilot, LOG.upper())
            await pilot.press(UNDO, UNDO)
            assert draft(pilot) == "one "
            await pilot.press("ctrl+y", "ctrl+y")
            assert box(pilot).draft.whole == f"one {LOG}{LOG.upper()}"

    async def test_ctrl_c_clears_and_undo_brings_it_back(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await paste(pilot, LOG)
            await pilot.press("ctrl+c")
            assert draft(pilot) == ""
            await pilot.press(UNDO)
            assert box(pilot).draft.whole == LOG

    @pytest.mark.parametrize("keys", [["backspace", UNDO], ["backspace"]])
    async def test_undo_brings_back_what_was_cleared_and_no_more(
        self, tmp_path: Path, keys: list[str]
    ) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await pilot.press(*"first", *keys)
            stood = draft(pilot)
            await pilot.press("ctrl+c")
            assert draft(pilot) == ""
            await pilot.press(UNDO)
            assert draft(pilot) == stood

    async def test_its_words_typed_by_hand_stay_words(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, says("ok"))
        async with make_app(chat, tmp_path).run_test() as pilot:
            await paste(pilot, LOG)
            await pilot.press("backspace", *"[paste 1: 10,000 lines]", "enter")
            await idle(pilot)
            assert chat.session.messages[0].text == "[paste 1: 10,000 lines]"

    async def test_control_characters_and_directions_do_not_come_in(self, tmp_path: Path) -> None:
        hostile = "\x1b[2J\u202eevil\x07 שלום\r\n" * 20
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await paste(pilot, hostile)
            assert box(pilot).draft.whole == "[2Jevil שלום\n" * 20

    async def test_it_is_drawn_at_sixty_columns_and_after_a_resize(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test(size=(60, 24)) as pilot:
            await pilot.press(*("word " * 6))
            await paste(pilot, LOG)
            await wait_until(pilot, lambda: box(pilot).size.height == 2)
            await pilot.resize_terminal(100, 30)
            await reads(pilot, "[paste 1: 10,000 lines")

    async def test_a_paste_while_a_question_is_asked_goes_into_the_box_folded(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, calls("run_command", command="true"))
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "go")
            await wait_until(pilot, lambda: pilot.app.screen.query(Question))
            pilot.app.screen.query_one(Question).post_message(events.Paste(LOG))
            await wait_until(pilot, lambda: "[paste 1: 10,000 lines" in seen(pilot))
            await pilot.press("escape")
            await idle(pilot)

    async def test_a_queued_paste_is_folded_again_when_it_is_taken_back(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, [TextDelta("one"), asyncio.Event()])
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "first")
            await busy(pilot)
            await pilot.press(*"see ")
            await paste(pilot, LOG)
            await pilot.press("enter", "up")
            assert seen(pilot).startswith("see [paste 1: 10,000 lines")
            assert box(pilot).draft.whole == f"see {LOG}"
            await pilot.press("escape")
            await idle(pilot)

    async def test_the_history_gives_it_back_folded(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path, says("ok")), tmp_path).run_test() as pilot:
            await paste(pilot, LOG)
            await pilot.press("enter")
            await idle(pilot)
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await pilot.press("up")
            assert seen(pilot).startswith("[paste 1: 10,000 lines")
            assert box(pilot).draft.whole == LOG


class TestKeys:
    """Readline's, where a plain text area has none."""

    @pytest.mark.parametrize(
        ("keys", "left"),
        [
            (["alt+b", "x"], "one two xthree"),
            (["ctrl+a", "alt+f", "x"], "onex two three"),
            (["alt+backspace"], "one two "),
            (["ctrl+w"], "one two "),
            (["ctrl+a", "alt+d"], " two three"),
            (["alt+b", "ctrl+u"], "three"),
            (["alt+b", "ctrl+k"], "one two "),
            (["ctrl+a", "x", "ctrl+e", "y"], "xone two threey"),
            (["ctrl+b", "x"], "one two threxe"),
            (["ctrl+x", "y"], "one two threey"),
        ],
    )
    async def test_words_and_lines(self, tmp_path: Path, keys: list[str], left: str) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await pilot.press(*"one two three", *keys)
            assert draft(pilot) == left

    async def test_keys_that_come_faster_than_they_are_worked_off_keep_their_order(
        self, tmp_path: Path
    ) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            for key in ("a", "b", "left", "x", "backspace", "y", "home", "z"):
                box(pilot).post_message(events.Key(key, key if len(key) == 1 else None))
            await pilot.pause()
            assert draft(pilot) == "zayb"

    async def test_ctrl_p_and_ctrl_n_are_up_and_down(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path, says("1")), tmp_path).run_test() as pilot:
            await type_line(pilot, "before")
            await idle(pilot)
            await pilot.press("a", "ctrl+j", "b", "ctrl+p")
            assert draft(pilot) == "a\nb"
            await pilot.press("ctrl+p")
            assert draft(pilot) == "before"
            await pilot.press("ctrl+n")
            assert draft(pilot) == "a\nb"

    async def test_an_editor_that_cannot_be_had_is_one_line_and_the_draft_stays(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await pilot.press(*"kept", "ctrl+x", "ctrl+e")
            await tells(pilot, "! ")
            assert draft(pilot) == "kept"


class TestSearch:
    """ctrl+r, as in a shell."""

    async def sent(self, pilot: Pilot[None]) -> None:
        for text in ("fix the lexer", "run the tests", "why is the lexer slow"):
            await type_line(pilot, text)
            await idle(pilot)
        await pilot.press(*"my draft")

    async def test_it_narrows_with_every_key_and_goes_older(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await self.sent(pilot)
            await pilot.press("ctrl+r", *"lex")
            assert draft(pilot) == "why is the lexer slow"
            assert box(pilot).selected_text == "lex"
            await reads(pilot, "history: lex")
            await pilot.press("ctrl+r")
            assert draft(pilot) == "fix the lexer"
            await pilot.press("ctrl+r")
            await pilot.pause()
            assert draft(pilot) == "fix the lexer"
            await reads(pilot, "no older one")
            await pilot.press("enter", "!")
            await wait_until(pilot, lambda: "history:" not in shown(pilot))
            assert "fix the" in draft(pilot)

    async def test_enter_takes_it_and_sends_nothing(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path)
        async with make_app(chat, tmp_path).run_test() as pilot:
            await self.sent(pilot)
            said = len(chat.session.messages)
            await pilot.press("ctrl+r", *"tests", "enter")
            assert draft(pilot) == "run the tests"
            assert len(chat.session.messages) == said

    @pytest.mark.parametrize("key", ["escape", "ctrl+c"])
    async def test_leaving_it_returns_the_draft(self, tmp_path: Path, key: str) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await self.sent(pilot)
            await pilot.press("ctrl+r", *"lexer", key)
            assert draft(pilot) == "my draft"
            assert not box(pilot).searching

    async def test_what_is_not_found_shows_the_draft_and_a_shorter_word_finds_again(
        self, tmp_path: Path
    ) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await self.sent(pilot)
            await pilot.press("ctrl+r", *"lexq")
            await pilot.pause()
            await reads(pilot, "not found")
            assert draft(pilot) == "my draft"
            await pilot.press("backspace")
            assert draft(pilot) == "why is the lexer slow"

    async def test_any_other_key_takes_it_and_means_what_it_means(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await self.sent(pilot)
            await pilot.press("ctrl+r", *"tests", "ctrl+a", "x")
            assert draft(pilot) == "xrun the tests"

    async def test_without_words_it_goes_through_everything(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await self.sent(pilot)
            await pilot.press("ctrl+r", "ctrl+r", "ctrl+r", "enter")
            assert draft(pilot) == "run the tests"


class TestCompletion:
    """The list above the box."""

    @pytest.mark.parametrize("size", [(80, 24), (160, 50)])
    async def test_arguments_are_offered_with_their_notes(
        self, tmp_path: Path, size: tuple[int, int]
    ) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test(size=size) as pilot:
            await pilot.press(*"/rolling-context ")
            await pilot.pause()
            await reads(pilot, "status   what it does now")
            await pilot.press("down", "down", "down", "tab")
            assert draft(pilot) == "/rolling-context status "

    async def test_only_what_enter_would_take_is_marked(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await pilot.press(*"/theme ")
            await reads(pilot, "  contrast")
            assert "❯ contrast" not in shown(pilot)
            await pilot.press("down")
            await reads(pilot, "❯ contrast")
            await pilot.press("up")
            await wait_until(pilot, lambda: "❯ contrast" not in shown(pilot))
            await pilot.press("down", "enter")
            await tells(pilot, "Theme: contrast.")
            await pilot.press(*"/the")
            await reads(pilot, "❯ /theme")

    async def test_enter_runs_what_was_chosen(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await pilot.press(*"/theme day", "enter")
            await tells(pilot, "Theme: daylight.")

    async def test_a_model_that_is_not_in_the_list_is_taken_as_typed(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path)
        async with make_app(chat, tmp_path).run_test() as pilot:
            await pilot.press(*"/model demo/offline")
            await pilot.pause()
            await pilot.press("enter")
            await wait_until(pilot, lambda: chat.session.model == "demo/offline")

    async def test_esc_declines_and_enter_then_sends_as_typed(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path), tmp_path).run_test() as pilot:
            await pilot.press(*"/theme day", "escape")
            await pilot.pause()
            await wait_until(pilot, lambda: "❯ daylight" not in shown(pilot))
            await pilot.press("enter")
            await tells(pilot, "There is no theme 'day'")


class TestDraftsThatStay:
    """What was not sent comes back."""

    async def test_a_draft_left_in_a_new_session_is_in_the_next(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        left = make_chat(tmp_path)
        async with make_app(left, tmp_path).run_test() as pilot:
            await pilot.press(*"half a thought")
            await pilot.press("ctrl+q")
            await wait_until(pilot, lambda: not pilot.app.is_running)
        assert len(list((tmp_path / "drafts").glob("*.json"))) == 1
        monkeypatch.setattr(Process, "is_gone", lambda _: True)  # whoever left it: here it is this process
        chat = make_chat(tmp_path)
        assert chat.session.info.id != left.session.info.id
        async with make_app(chat, tmp_path).run_test() as pilot:
            await wait_until(pilot, lambda: draft(pilot) == "half a thought")
            await tells(pilot, "The draft that was not sent is back")

    async def test_what_is_sent_is_no_draft_any_more(self, tmp_path: Path) -> None:
        async with make_app(make_chat(tmp_path, says("ok")), tmp_path).run_test() as pilot:
            await pilot.press(*"to be sent")
            await wait_until(pilot, lambda: list((tmp_path / "drafts").glob("*.json")))
            await pilot.press("enter")
            await idle(pilot)
            await wait_until(pilot, lambda: not list((tmp_path / "drafts").glob("*.json")))

    async def test_a_waiting_message_is_kept_with_the_draft(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, [TextDelta("one"), asyncio.Event()])
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "first")
            await busy(pilot)
            await type_line(pilot, "second")
            await pilot.press(*"third")
            kept = lambda: "".join(file.read_text() for file in (tmp_path / "drafts").glob("*.json"))  # noqa: E731
            await wait_until(pilot, lambda: '"third"' in kept() and '"waiting": ["second"]' in kept())
            await pilot.press("escape")
            await idle(pilot)

    async def test_the_draft_goes_along_into_another_session(self, tmp_path: Path) -> None:
        chat = make_chat(tmp_path, says("ok"))
        async with make_app(chat, tmp_path).run_test() as pilot:
            await type_line(pilot, "hello")
            await idle(pilot)
            await pilot.press(*"mine")
            chat.start_new()
            screen_of(pilot).load()
            kept = lambda: "".join(file.read_text() for file in (tmp_path / "drafts").glob("*.json"))  # noqa: E731
            await wait_until(pilot, lambda: chat.session.info.id in kept())
            assert draft(pilot) == "mine"
            assert pilot.app.screen.query_one(Transcript)
