"""The inspector: rows are pinned and excluded from it, the price before the deed."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from rolling_chat.tui.dialogs.inspector import InspectorScreen
from tests.support.tui import (
    idle,
    make_app,
    make_chat,
    reads,
    says,
    screen_of,
    shown,
    tells,
    transcript,
    type_line,
    wait_until,
)


async def _open(pilot: Pilot[None]) -> None:
    """Two turns, and the inspector over them: r4 is the first row, r3 the second."""
    for text in ("Which port?", "And now?"):
        await type_line(pilot, text)
        await idle(pilot)
    await type_line(pilot, "/context")
    await wait_until(pilot, lambda: isinstance(pilot.app.screen, InspectorScreen) and "r3" in shown(pilot))


async def test_the_price_is_shown_before_a_row_is_pinned(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("It is 8443."), says("Nothing."))
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await _open(pilot)
        await pilot.press("p")
        await reads(pilot, "Pin r4 with its request:", "p or enter does it, esc cancels")
        assert not chat.session.pins.scope
        await pilot.press("p")
        await wait_until(pilot, lambda: "◆ r4" in shown(pilot) and "◇ r3" in shown(pilot))
        await reads(pilot, "Pinned r4 with its request:")
        await pilot.press("p", "enter")
        await wait_until(pilot, lambda: "◆ r4" not in shown(pilot))
        assert not chat.session.pins.scope
        await pilot.press("enter")
        await wait_until(pilot, lambda: pilot.app.screen is screen_of(pilot))
        await tells(pilot, "/unpin r4 takes it back.")


@pytest.mark.parametrize("size", [(60, 20), (60, 16), (40, 10)])
async def test_on_a_small_screen_what_is_offered_stands_beside_its_row(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    chat = make_chat(tmp_path, says("It is 8443."), says("Nothing."))
    async with make_app(chat, tmp_path).run_test(size=size) as pilot:
        await _open(pilot)
        await pilot.press("p")
        await reads(pilot, "r4  assist", "r3  user", "Pin r4 with its request:", "p pin · x exclude")


@pytest.mark.parametrize(
    ("width", "words"), [(60, ""), (80, "/rolling-context set reserve"), (120, "set reserved_output_tokens")]
)
async def test_what_makes_a_category_smaller_stands_beside_it_where_there_is_room(
    tmp_path: Path, width: int, words: str
) -> None:
    chat = make_chat(tmp_path, says("It is 8443."), says("Nothing."))
    async with make_app(chat, tmp_path).run_test(size=(width, 30)) as pilot:
        await _open(pilot)
        await reads(pilot, "reserve for the answer", "safety margin", words)
        assert ("made smaller by" in shown(pilot)) == bool(words)


async def test_on_fewer_rows_the_row_under_the_cursor_stays_in_sight(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, *[says("It is 8443.")] * 8)
    for _ in range(6):
        async for _event in chat.send("Which port?"):
            pass
    async with make_app(chat, tmp_path).run_test(size=(80, 40)) as pilot:
        await _open(pilot)
        await pilot.press(*["down"] * 7)
        await pilot.resize_terminal(60, 16)
        await reads(pilot, "r9  user")
        await pilot.press("x")
        await reads(pilot, "Exclude r9 with")


async def test_a_message_that_has_gone_meanwhile_is_not_pinned_nor_another_in_its_place(
    tmp_path: Path,
) -> None:
    chat = make_chat(tmp_path, says("It is 8443."), says("Nothing."), says("Something else."))
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await _open(pilot)
        await pilot.press("p")
        await reads(pilot, "Pin r4 with its request:")
        chat.session.history.undo()
        await pilot.press("p")
        await reads(pilot, "The conversation has changed meanwhile: look again.")
        await pilot.press("x")
        await reads(pilot, "Exclude r2:")
        chat.session.history.undo()
        async for _ in chat.send("Which host?"):
            pass
        await pilot.press("x")
        await reads(pilot, "The conversation has changed meanwhile: look again.")
        assert not chat.session.pins.scope


async def test_esc_and_another_row_leave_what_was_offered(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("It is 8443."), says("Nothing."))
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await _open(pilot)
        await pilot.press("x")
        await reads(pilot, "Exclude r4:")
        await pilot.press("escape")
        await wait_until(pilot, lambda: "Exclude r4:" not in shown(pilot))
        await pilot.press("x", "down")
        await wait_until(pilot, lambda: "Exclude r4:" not in shown(pilot))
        await pilot.press("x")
        await reads(pilot, "Exclude r3 with the message after it:")
        assert not chat.session.pins.scope
        await pilot.press("x")
        await wait_until(pilot, lambda: "∅ r3" in shown(pilot) and "∅ r4" in shown(pilot))
        await pilot.press("up", "x")
        await reads(pilot, "r4 is excluded along with r3: /include r3")
        await pilot.press("escape")
        await wait_until(pilot, lambda: pilot.app.screen is screen_of(pilot))
        await wait_until(pilot, lambda: transcript(pilot).count("∅ excluded") == 2)


async def test_the_system_message_always_stays(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("It is 8443."), says("Nothing."))
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await _open(pilot)
        await pilot.press("down", "down", "down", "down", "x", "x", "p")
        await reads(pilot, "The system message always stays.")
        assert not chat.session.pins.scope


async def test_what_is_said_meanwhile_shows_and_the_cursor_stays_on_its_row(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("It is 8443."), says("Nothing."), says("Still nothing."))
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await _open(pilot)
        async for _event in chat.send("Anything?"):
            pass
        await reads(pilot, "r6")
        await pilot.press("x")
        await reads(pilot, "Exclude r4:")


async def test_an_unpinned_conversation_is_drawn_as_before(tmp_path: Path) -> None:
    chat = make_chat(tmp_path, says("It is 8443."))
    async with make_app(chat, tmp_path).run_test(size=(100, 30)) as pilot:
        await type_line(pilot, "Which port?")
        await idle(pilot)
        before = transcript(pilot).splitlines()
        await type_line(pilot, "/pin r2")
        await tells(pilot, "Pinned r2")
        assert transcript(pilot).splitlines()[: len(before)] != before
        await type_line(pilot, "/unpin r2")
        await tells(pilot, "Unpinned r2")
        assert transcript(pilot).splitlines()[: len(before)] == before
