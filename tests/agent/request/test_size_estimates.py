"""A reply that comes is counted as it will be counted once it is there."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.agent.request.size_estimates import SizeEstimates, StreamedReply
from rolling_chat.context.tokens import estimator_for
from rolling_chat.events import CallForming, ReasoningAdded, TextAdded
from rolling_chat.messages import Message, ToolCall
from rolling_chat.providers.wire import REASONING, made_by
from tests.support.conversations import WORDS


def _sizes(model: str = "openai/gpt-4o-mini") -> SizeEstimates:
    return SizeEstimates(model, estimator_for(model))


def _follow(model: str = "openai/gpt-4o-mini") -> StreamedReply:
    return _sizes(model).follow("r")


def test_nothing_has_come_at_first() -> None:
    assert _follow().tokens == 0


@given(st.lists(WORDS, max_size=12))
def test_text_that_streams_costs_what_it_costs_when_it_is_sealed(pieces: list[str]) -> None:
    reply, sizes, text = _follow(), _sizes(), ""
    for piece in pieces:
        before = reply.tokens
        reply.take(TextAdded("r", piece))
        text += piece
        assert reply.tokens >= before - 2  # what comes may join what was there into fewer tokens
    sealed = sizes.of(Message("assistant", text)) if text else 0
    assert abs(reply.tokens - sealed) <= 2 + sealed // 100


def test_a_long_word_without_an_end_is_counted_too() -> None:
    reply = _follow()
    for _ in range(100):
        reply.take(TextAdded("r", "abcdefgh" * 10))
    assert reply.tokens > 1000


def test_of_a_giant_a_part_is_counted_at_a_time_and_the_rest_inferred() -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text) // 4

    reply = replace(_follow(), count=count)
    reply.take(TextAdded("r", "word " * 200_000))
    for _ in range(12):
        counted.clear()
        assert 0.99 < reply.tokens / 250_000 < 1.01
        assert sum(counted) < 110_000
    assert sum(counted) < 10_000, "by now all is counted but the end"


@pytest.mark.parametrize(
    ("model", "counts"), [("deepseek/deepseek-reasoner", True), ("openai/gpt-4o-mini", False)]
)
def test_reasoning_counts_where_the_model_gets_it_back(model: str, counts: bool) -> None:
    reply, thought = _follow(model), "let me think of this " * 20
    reply.take(ReasoningAdded("r", thought))
    sealed = Message("assistant", "So.", extras={REASONING: thought}, made_by=made_by(model))
    assert (reply.tokens > 50) is counts
    reply.take(TextAdded("r", "So."))
    assert abs(reply.tokens - _sizes(model).of(sealed)) <= 2


def test_calls_that_form_count_and_are_no_more_than_they_turn_out_to_be() -> None:
    reply = _follow()
    arguments = [
        json.dumps({"path": f"src/module_{at}.py", "text": 'x = {"a": 1}\n' * 40}) for at in range(2)
    ]
    sizes = []
    for text in arguments:
        for characters in range(0, len(text), 50):
            reply.take(CallForming("r", "write_file", characters))
            sizes.append(reply.tokens)
        reply.take(CallForming("r", "write_file", len(text)))
    made = tuple(ToolCall(f"c{at}", "write_file", text) for at, text in enumerate(arguments))
    assert sizes == sorted(sizes)
    assert 0.4 * _sizes().of(Message("assistant", "", made)) < reply.tokens
    assert reply.tokens <= _sizes().of(Message("assistant", "", made))


def test_what_comes_of_another_reply_is_passed_over() -> None:
    reply = _follow()
    reply.take(TextAdded("another", "words"))
    assert reply.tokens == 0
