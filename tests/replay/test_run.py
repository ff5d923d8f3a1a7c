"""One conversation, request by request."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context import ContextConfig, CountMemo, Fate, estimate_tokens
from rolling_chat.replay import Transcript, replay
from tests.support.conversations import assistant, conversations, tool, torn_conversations, user
from tests.support.prompt_rules import broken_rules
from tests.support.replay import SYSTEM, long_conversation, replayed, transcript


def test_a_request_for_every_answer_and_for_the_one_awaited() -> None:
    requests = replayed([SYSTEM, user("one"), assistant("two"), user("three")])
    assert [(each.request, each.at_message) for each in requests] == [(1, 2), (2, 4)]
    assert [[message.text for message in each.prompt[1:]] for each in requests] == [
        ["one"],
        ["one", "two", "three"],
    ]


def test_nothing_was_cached_before_the_first_and_all_of_it_before_the_second() -> None:
    first, second = replayed([SYSTEM, user("one"), assistant("two"), user("three")])
    assert first.cached_prefix_tokens == 0
    framing = estimate_tokens([])
    assert second.cached_prefix_tokens == first.report.token_count - framing


def test_tools_are_counted_and_stay_cached() -> None:
    schema = {"type": "function", "function": {"name": "f", "description": "words " * 50}}
    plain = transcript([SYSTEM, user("one"), assistant("two"), user("three")])
    with_tools = Transcript("x", plain.messages, tools=(schema,))
    one, two = replay(with_tools, ContextConfig())
    cost = estimate_tokens([], tools=[schema]) - estimate_tokens([])
    assert one.report.tools == cost
    assert two.cached_prefix_tokens == replayed(list(plain.sources))[1].cached_prefix_tokens + cost


def test_the_plan_is_handed_on_so_that_the_prefix_stands_between_trims() -> None:
    requests = replayed(
        long_conversation(30),
        max_context_tokens=8192,
        tool_result_masking="steps",
        max_tool_result_tokens=500,
    )
    assert not any(each.overflow for each in requests)
    trims = [each for each in requests if each.report.trimmed]
    assert 0 < len(trims) < len(requests) / 3
    for before, each in pairwise(requests):
        stands = list(each.prompt[: len(before.prompt)]) == list(before.prompt)
        assert stands is not each.report.trimmed


def test_an_overflow_is_reported_and_the_next_request_goes_on() -> None:
    messages = [
        SYSTEM,
        user("small"),
        assistant("yes"),
        user("huge " * 20_000),
        assistant("no"),
        user("small"),
    ]
    requests = replayed(messages, max_context_tokens=8192)
    assert [bool(each.overflow) for each in requests] == [False, True, False]
    assert requests[1].overflow.startswith("Cannot fit request within context limit.")
    assert requests[1].prompt == ()
    assert requests[1].cached_prefix_tokens == 0
    assert not requests[1].report.within_budget
    assert requests[2].report.within_budget


def test_with_rolling_off_nothing_leaves() -> None:
    requests = replayed(long_conversation(12), max_context_tokens=8192, enabled=False)
    assert requests[-1].overflow
    assert all(each.fates[Fate.OMITTED] == 0 for each in requests)


def test_messages_are_counted_once() -> None:
    talk = transcript(long_conversation(3))
    memo = CountMemo()
    list(replay(talk, ContextConfig(), memo=memo))
    assert all(memo.counts_of(message) for message in talk.messages[:-1])


@pytest.mark.parametrize(
    "messages",
    [
        [tool("lost", "an orphan"), user("hello")],
        [user("one"), assistant("", ("a", "f")), user("two")],
        [user("one"), assistant("", ("a", "f"), ("b", "f")), tool("b", "two"), tool("b", "again"), user("x")],
        [user("one"), user("two")],
        [user(""), assistant(""), user("x")],
    ],
)
def test_a_broken_transcript_is_repaired_before_it_is_planned(messages: list[dict[str, Any]]) -> None:
    for each in replayed([SYSTEM, *messages]):
        assert broken_rules([message.to_dict() for message in each.prompt]) == []


@given(conversations() | torn_conversations(), st.sampled_from([2048, 4096, 8192, 131_072]), st.booleans())
@pytest.mark.slow
def test_every_request_accounts_for_every_message(
    messages: list[dict[str, Any]], window: int, enabled: bool
) -> None:
    for each in replayed(messages, max_context_tokens=window, enabled=enabled):
        assert sum(each.fates.values()) == each.at_message
        assert 0 <= each.cached_prefix_tokens <= each.report.token_count
        assert bool(each.overflow) is not each.report.within_budget
        assert bool(each.overflow) is not bool(each.prompt) or each.at_message == 0
