"""Answers of a size that no screen was made for: shown, kept whole, and keys are taken after them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.answers import GIANTS, hostile_answers, in_pieces
from tests.support.tui import draft, make_app, make_chat, reads, says, screen_of, type_line, wait_until

pytestmark = pytest.mark.slow

MEGABYTE = 1_000_000
_PIECES = 200
_PATIENCE = 600.0  # seconds


def _answer(name: str) -> str:
    if name in GIANTS:
        return GIANTS[name](MEGABYTE)
    return hostile_answers(10 * MEGABYTE if name.startswith("one long line") else MEGABYTE)[name]


@pytest.mark.parametrize(
    "name",
    [*GIANTS, "one long line", "one long line in a fence", "a fence that never ends", "unclosed everything",
     "brackets", "deep quotes", "deep lists", "combining", "wide", "terminal control"],
)  # fmt: skip
async def test_a_giant_answer_is_shown_and_keys_are_taken_after_it(tmp_path: Path, name: str) -> None:
    text = _answer(name)
    chat = make_chat(tmp_path, says(*in_pieces(text, -(-len(text) // _PIECES))))
    async with make_app(chat, tmp_path).run_test() as pilot:
        await type_line(pilot, "go")
        screen = screen_of(pilot)
        await wait_until(pilot, lambda: not screen.state.busy and not chat.busy, seconds=_PATIENCE)
        await reads(pilot, "done in")
        await pilot.press("ctrl+home", "pagedown", "ctrl+end", "x")
        await wait_until(pilot, lambda: draft(pilot) == "x", seconds=_PATIENCE)
    assert chat.session.messages[-1].text == text
