"""What the screen shows of summaries: the banner, the sign, the preview, the editor."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import TextArea

from rolling_chat.agent import Chat
from rolling_chat.events import SummaryBegan, SummaryEnded
from rolling_chat.settings.schema import ContextSettings, ModelSettings, Settings
from rolling_chat.tui.dialogs import confirm_screen as confirm
from rolling_chat.tui.dialogs.confirm_screen import ConfirmScreen
from rolling_chat.tui.dialogs.editor_screen import EditorScreen
from tests.support.tui import (
    MODEL,
    Reply,
    draft,
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

SUMMARY = "They talked of [b]the lexer[/b]."
BANNER = "Older messages in this session have been summarized to maintain conversation quality."


async def _chat(
    tmp_path: Path, *, summary: Reply | None = None, answers: Sequence[str] = ("So. " * 200,) * 3
) -> Chat:
    settings = Settings(
        model=MODEL,
        models={MODEL: ModelSettings(max_input_tokens=32_000)},
        context=ContextSettings(enabled=True),
    )
    chat = make_chat(
        tmp_path,
        *map(says, answers),
        summary or says(SUMMARY),
        *[says(SUMMARY)] * 2,
        settings=settings,
        folder=tmp_path,
    )
    for number in range(3):
        async for _ in chat.send(f"What of the lexer, {number}?"):
            pass
    return chat


def _on_screen(pilot: Pilot[None]) -> str:
    return " ".join(shown(pilot).split())


async def test_a_summary_is_previewed_taken_said_above_the_conversation_and_dismissed(tmp_path: Path) -> None:
    chat = await _chat(tmp_path)
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await reads(pilot, "rolling: on")  # all of the first screen is drawn, the report's part too
        assert BANNER not in _on_screen(pilot)
        await type_line(pilot, "/compact")
        await wait_until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await pilot.pause()
        await reads(pilot, SUMMARY, "enter use it · esc cancel")
        await pilot.press("enter")
        await wait_until(pilot, lambda: BANNER in _on_screen(pilot))
        assert chat.session.summaries.is_active
        await pilot.press("escape")
        await wait_until(pilot, lambda: BANNER not in _on_screen(pilot))
        assert chat.session.info.summary_noted


async def test_who_is_typing_when_a_summary_comes_takes_nothing_and_loses_no_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirm, "GRACE", 60.0)  # however slow the machine is
    chat = await _chat(tmp_path)
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await reads(pilot, "rolling: on")
        await type_line(pilot, "/compact")
        await wait_until(pilot, lambda: isinstance(pilot.app.screen, ConfirmScreen))
        await pilot.press(*"and", "enter", *"then")
        asked = pilot.app.screen
        assert isinstance(asked, ConfirmScreen)
        assert draft(pilot) == "andthen"
        asked._listen()
        await reads(pilot, "enter use it · esc cancel")
        await pilot.press("enter")
        await wait_until(pilot, lambda: BANNER in _on_screen(pilot))
        assert draft(pilot) == "andthen"


async def test_esc_stops_a_summary_that_was_asked_for_and_a_second_one_waits_for_it(tmp_path: Path) -> None:
    chat = await _chat(tmp_path, summary=[asyncio.Event()])
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await reads(pilot, "rolling: on")
        await type_line(pilot, "/compact")
        await reads(pilot, "esc stop the summary")
        await type_line(pilot, "/compact")
        await tells(pilot, "A summary is being made already: Esc stops it.")
        await pilot.press("escape")
        await tells(pilot, "The summary was stopped; nothing was changed.")
        await wait_until(pilot, lambda: "esc stop" not in shown(pilot))
        assert pilot.app.screen is screen_of(pilot)
        assert chat.session.summaries.current is None
        await type_line(pilot, "/compact")
        await reads(pilot, SUMMARY, "esc cancel")


async def test_the_editor_keeps_what_was_written_and_esc_leaves_it(tmp_path: Path) -> None:
    chat = await _chat(tmp_path)
    chat.session.summaries.take(await chat.session.summaries.propose())
    async with make_app(chat, tmp_path).run_test(size=(80, 24)) as pilot:
        for key, text in (("escape", SUMMARY), ("ctrl+s", "Another.")):
            await type_line(pilot, "/summary")
            await wait_until(pilot, lambda: isinstance(pilot.app.screen, EditorScreen))
            assert pilot.app.screen.query_one(TextArea).text == SUMMARY
            pilot.app.screen.query_one(TextArea).text = "Another."
            await pilot.press(key)
            await wait_until(pilot, lambda: not isinstance(pilot.app.screen, EditorScreen))
            await wait_until(
                pilot,
                lambda text=text: (
                    chat.session.summaries.current and chat.session.summaries.current.text == text
                ),
            )
        await tells(pilot, "as you wrote it")


async def test_what_it_leaves_out_is_listed_and_a_line_put_in_and_f7_lists_what_was_lost(
    tmp_path: Path,
) -> None:
    chat = await _chat(tmp_path, answers=["See src/a_1.py.", "See src/b_2.py. " + "So. " * 300, "So."])
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await reads(pilot, "rolling: on")
        await type_line(pilot, "/compact")
        await reads(pilot, "It does not mention src/b_2.py, src/a_1.py.", "tab what it leaves out")
        await pilot.press("tab")
        await reads(pilot, "choose a line to put in", "r4 assistant")
        await pilot.press("enter")
        await reads(pilot, "(r4)", "It does not mention src/a_1.py.", "enter use it")
        await pilot.press("enter")
        await tells(pilot, "from the next request on")
        await pilot.press("ctrl+home")
        await reads(pilot, "4 earlier messages: 3 summarized", "· f7 what was lost")
        await pilot.press("f7")
        await reads(pilot, "What was lost", "r2 assistant")
        await pilot.press("enter")
        await tells(pilot, "The summary has the line of r2")
        assert chat.session.summaries.current is not None
        assert "src/a_1.py" in chat.session.summaries.current.text


async def test_in_a_low_window_the_summary_is_scrolled_to(tmp_path: Path) -> None:
    chat = await _chat(tmp_path, answers=[f"See src/part_{part}_of_it.py. " + "So. " * 200 for part in "abc"])
    async with make_app(chat, tmp_path).run_test(size=(44, 12)) as pilot:
        await type_line(pilot, "/compact")
        await reads(pilot, "The summary covers", "esc cancel")
        await pilot.press(*["down"] * 20)
        await reads(pilot, "[b]the lexer[/b]")


async def test_a_sign_stands_in_the_status_line_while_one_is_made(tmp_path: Path) -> None:
    chat = await _chat(tmp_path)
    async with make_app(chat, tmp_path).run_test(size=(80, 24)) as pilot:
        tell = chat.listener.on_summary
        assert tell is not None
        tell(SummaryBegan())
        await pilot.pause()
        await reads(pilot, "summarizing older messages")
        tell(SummaryEnded("Older messages are not being summarized (why)."))
        await pilot.pause()
        await wait_until(pilot, lambda: "summarizing older messages" not in shown(pilot))
        await tells(pilot, "are not being summarized (why)")
        assert not screen_of(pilot).state.busy
