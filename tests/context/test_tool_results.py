"""Layer 3a and leveling."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context import ContextConfig, CountMemo, build_final_prompt
from rolling_chat.context.leveling import level
from rolling_chat.context.tokens import estimator_for
from rolling_chat.context.tool_results import (
    _indicator,
    drop_parts,
    mask_result,
    shorten_result,
    truncate_text,
)
from rolling_chat.context_keys import Truncation
from rolling_chat.messages import Message
from tests.support.conversations import WORDS

LINES = "".join(f"line {number} of a long listing\n" for number in range(8_000))
count = estimator_for("gpt-4o").count_text


def test_a_result_under_its_cap_is_the_same_object() -> None:
    message = Message("tool", "short", tool_call_id="1")
    assert shorten_result(message, 100, "head", count, CountMemo()) is message


def test_head_keeps_the_beginning_and_says_so_after_it() -> None:
    text = truncate_text(LINES, 8_000, "head", count, CountMemo())
    assert text.startswith("line 0 of")
    assert re.fullmatch(r"\[truncated: kept first ~8000 of ~\d+000 tokens \(head\)\]", text.splitlines()[-1])


def test_tail_keeps_the_end_and_says_so_before_it() -> None:
    text = truncate_text(LINES, 8_000, "tail", count, CountMemo())
    assert text.endswith("line 7999 of a long listing\n")
    assert text.splitlines()[0].startswith("[truncated: kept last ~8000 of ~")


def test_both_keeps_halves_and_says_so_between_them() -> None:
    lines = truncate_text(LINES, 8_000, "both", count, CountMemo()).splitlines()
    position = next(
        number for number, line in enumerate(lines) if line.startswith("[truncated: kept first+last ~8000 of")
    )
    assert lines[0].startswith("line 0 ")
    assert lines[-1].startswith("line 7999 ")
    assert 0.4 < position / len(lines) < 0.6


def test_the_cut_falls_on_a_line_end_where_one_is_near() -> None:
    kept = truncate_text(LINES, 500, "head", count, CountMemo()).splitlines()[:-1]
    assert all(line.endswith("of a long listing") for line in kept)


@given(WORDS, st.integers(1, 400), st.sampled_from(["auto", "head", "tail", "both"]))
def test_the_indicator_is_inside_the_cap_and_nothing_grows(text: str, cap: int, style: Truncation) -> None:
    shortened = shorten_result(Message("tool", text, tool_call_id="1"), cap, style, count, CountMemo())
    assert len(shortened.text) <= len(text)
    if cap >= 30:
        assert count(shortened.text) <= cap


def test_a_result_is_counted_and_cut_once_however_often_it_is_asked_for() -> None:
    asked = []

    def counting(text: str) -> int:
        asked.append(len(text))
        return count(text)

    message, memo = Message("tool", LINES, tool_call_id="1"), CountMemo()
    first = shorten_result(message, 500, "head", counting, memo)
    before = len(asked)
    again = shorten_result(message, 500, "head", counting, memo)
    assert len(asked) == before
    assert again == first


@pytest.mark.parametrize("style", ["auto", "head", "tail", "both"])
def test_a_cut_result_fills_its_cap(style: Truncation) -> None:
    assert count(truncate_text(LINES, 4_000, style, count, CountMemo())) > 0.9 * 4_000


def test_levelling_keeps_small_results_whole_and_shares_the_rest() -> None:
    assert level([100, 5_000, 9_000], 4_100) == [100, 2_000, 2_000]


@given(st.lists(st.integers(0, 10_000), max_size=12), st.integers(0, 50_000))
def test_levelling_fills_the_room_and_never_exceeds_it(sizes: list[int], room: int) -> None:
    shares = level(sizes, room)
    assert all(0 <= share <= size for share, size in zip(shares, sizes, strict=True))
    if sum(sizes) <= room:
        assert shares == sizes
    else:
        assert room - len(sizes) < sum(shares) <= room


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def test_a_shortened_result_keeps_its_images() -> None:
    parts = ({"type": "text", "text": LINES[:5_000]}, IMAGE, {"type": "text", "text": LINES[5_000:]})
    shorter = shorten_result(Message("tool", parts, tool_call_id="1"), 500, "head", count, CountMemo())
    assert [part["type"] for part in shorter.content if not isinstance(part, str)] == ["text", "image_url"]
    assert count(shorter.text) <= 500


def test_a_mask_counts_the_images_that_leave_with_the_text() -> None:
    message = Message("tool", ({"type": "text", "text": "see"}, IMAGE), tool_call_id="1")
    assert (
        mask_result(message, count, CountMemo(), parts=1_500).content
        == "[result masked — ~1500 tokens removed]"
    )
    assert mask_result(Message("tool", "see", tool_call_id="1"), count, CountMemo()).text == "see"


def test_an_image_that_cannot_fit_leaves_a_line_that_says_so() -> None:
    message = Message("tool", ({"type": "text", "text": "see"}, IMAGE), tool_call_id="1")
    assert drop_parts(message, 1_500).content == "see\n[truncated: kept first ~0 of ~1500 tokens (head)]"


@pytest.mark.parametrize(
    ("tokens", "said"), [(0, 0), (7, 7), (42, 42), (99, 99), (105, 100), (51_960, 52_000)]
)
def test_small_numbers_are_said_as_they_are_and_large_ones_in_two_figures(tokens: int, said: int) -> None:
    assert f"kept first ~{said} of" in _indicator(tokens, 10, "head")


@pytest.mark.parametrize("kind", ["document", "search_result"])
def test_a_result_with_parts_that_are_unknown_is_whole_or_gone(kind: str) -> None:
    part = {"type": kind, "title": "word " * 40}
    messages = [{"role": "user", "content": "Go."}]
    for number in range(30):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        result = [{"type": "text", "text": "word " * 40}, part]
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    prompt = build_final_prompt(messages, ContextConfig(max_context_tokens=2_000), model="gpt-4o")
    results = [message for message in prompt.messages if message["role"] == "tool"]
    assert 0 < len(results) < 30
    assert all(part in message["content"] for message in results)
