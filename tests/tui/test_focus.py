"""Some widget always takes the keys: whatever was pressed or clicked, what is typed next is seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from tests.support.keys import MODES, asks, echoes, walking
from tests.support.tui import draft, screen_of, wait_until


def _mouse(kind: type[events.MouseEvent], x: int, y: int) -> events.MouseEvent:
    return kind(None, x, y, 0, 0, 1, False, False, False, screen_x=x, screen_y=y)


async def _outside(pilot: Pilot[None], kind: type[events.MouseEvent]) -> None:
    """The mouse is pressed or released where no cell of the screen is."""
    width, height = pilot.app.size
    for x, y in ((width, height // 2), (width // 2, height), (width + 9, height + 9)):
        pilot.app.post_message(_mouse(kind, x, y))
    await pilot.pause()


async def test_a_mouse_event_outside_the_screen_leaves_the_keys_where_they_were(tmp_path: Path) -> None:
    async with walking(tmp_path) as pilot:
        for mode in MODES:
            await mode.enter(pilot)
            before = pilot.app.focused
            for kind in (events.MouseDown, events.MouseUp, events.MouseScrollUp):
                await _outside(pilot, kind)
                assert pilot.app.focused is before is not None, (mode.name, kind)
            await echoes(pilot)


async def test_what_the_terminal_takes_the_focus_from_has_it_again_with_the_next_key(tmp_path: Path) -> None:
    async with walking(tmp_path) as pilot:
        pilot.app.post_message(events.AppBlur())
        await wait_until(pilot, lambda: pilot.app.focused is None)
        pilot.app.post_message(events.Paste("pasted"))
        await wait_until(pilot, lambda: draft(pilot) == "pasted")


async def test_a_question_that_cannot_be_seen_is_not_answered(tmp_path: Path) -> None:
    async with walking(tmp_path) as pilot:
        answers = await asks(pilot)
        await pilot.resize_terminal(30, 8)
        await wait_until(pilot, lambda: screen_of(pilot).has_class("-too-small"))
        await pilot.press("y", "y", "enter")
        assert answers == []
        await pilot.resize_terminal(80, 24)
        await wait_until(pilot, lambda: pilot.app.focused is not None)
        await pilot.press("escape")
        await wait_until(pilot, lambda: answers == ["no"])


@pytest.mark.parametrize(
    "keys",
    [
        ("f6", "escape", "tab", "a"),
        ("f6", "escape", "tab", "tab", "escape", "a"),
        ("f6", "x", "tab", "a"),
        ("f6", "ctrl+f", "escape", "escape", "tab", "a"),
    ],
    ids="-".join,
)
async def test_after_reading_the_keys_are_the_prompts(tmp_path: Path, keys: tuple[str, ...]) -> None:
    async with walking(tmp_path) as pilot:
        await echoes(pilot, *keys)
