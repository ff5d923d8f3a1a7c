"""Answers that a screen may choke on, streamed through the real app: it shows them, and goes on."""

from __future__ import annotations

import random
import unicodedata
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.support.answers import hostile_answers, in_pieces
from tests.support.tui import Reply, draft, idle, make_app, make_chat, reads, says, shown, type_line

_ANSWERS = hostile_answers(2_000)
_SIZES = ((80, 24), (41, 11), (160, 50))


def is_sound(screen: str) -> bool:
    """Nothing on it is a control character, or turns the direction of reading."""
    rows = screen.split("\n")
    bad = {"Cc", "Cs"}
    return not any(unicodedata.category(character) in bad for row in rows for character in row) and not (
        set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068") & set(screen)
    )


async def default_focus(pilot: Pilot[None]) -> bool:
    """Whether a key that is pressed now reaches the prompt box."""
    await pilot.press("x")
    await pilot.pause()
    reached = draft(pilot) == "x"
    await pilot.press("backspace")
    return reached


_SOME_AT_ONCE = [
    pytest.param(name, marks=[pytest.mark.slow] if at % 3 else []) for at, name in enumerate(_ANSWERS)
]


@pytest.mark.parametrize("name", _SOME_AT_ONCE)
async def test_a_hostile_answer_is_shown_as_text(tmp_path: Path, name: str) -> None:
    chat = make_chat(tmp_path, says(*in_pieces(_ANSWERS[name], 97)))
    async with make_app(chat, tmp_path).run_test() as pilot:
        await type_line(pilot, "go")
        await idle(pilot)
        await reads(pilot, "done in")
        assert is_sound(shown(pilot))
        await pilot.press("pageup")
        await pilot.resize_terminal(45, 12)
        await pilot.pause()
        assert is_sound(shown(pilot))
        assert await default_focus(pilot)
    assert chat.session.messages[-1].text == _ANSWERS[name]


@pytest.mark.parametrize("seed", range(3))
async def test_a_conversation_of_hostile_answers_in_pieces_of_any_size(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    replies = [_random_reply(rng) for _ in range(6)]
    chat = make_chat(tmp_path, *replies)
    async with make_app(chat, tmp_path).run_test() as pilot:
        for _ in replies:
            await type_line(pilot, "go")
            await idle(pilot)
            assert is_sound(shown(pilot))
            await pilot.press(rng.choice(("pageup", "pagedown", "ctrl+home", "ctrl+end", "ctrl+o")))
            await pilot.resize_terminal(*rng.choice(_SIZES))
            await pilot.pause()
            assert is_sound(shown(pilot))
        assert await default_focus(pilot)
    assert len(chat.session.messages) == 2 * len(replies)


def _random_reply(rng: random.Random) -> Reply:
    """Bits of hostile answers, torn out anywhere and put together, streamed in bits of any size."""
    texts = list(_ANSWERS.values())
    bits = []
    for _ in range(rng.randint(3, 12)):
        text = rng.choice(texts)
        start = rng.randrange(len(text))
        bits.append(text[start : start + rng.choice((1, 3, 20, 150))] + rng.choice(("", " ", "\n", "\n\n")))
    whole, pieces, at = "".join(bits), [], 0
    while at < len(whole):
        size = rng.choice((1, 2, 7, 60))
        pieces.append(whole[at : at + size])
        at += size
    return says(*pieces)
