"""The two functions for callers that need nothing but trimming."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    build_final_prompt,
    enforce_context_limit,
    prompt_bound,
    trim_conversation,
)
from tests.support.conversations import JUNK, MESSAGE_LIKE, assistant, tool, user
from tests.support.prompt_rules import broken_rules

OPTIONS = st.dictionaries(
    st.sampled_from([field.name for field in dataclasses.fields(ContextConfig)]) | st.text(max_size=3),
    JUNK,
    max_size=4,
)

CHAT = [{"role": "system", "content": "s"}] + [
    message
    for n in range(30)
    for message in (user(f"q{n} " + "word " * 40), assistant(f"a{n} " + "word " * 40))
]


def test_messages_within_the_limit_come_back_untouched() -> None:
    assert enforce_context_limit(CHAT, 100_000) == (CHAT, False, 0)


def test_older_messages_are_omitted_until_the_rest_fits() -> None:
    messages, truncated, dropped = enforce_context_limit(CHAT, 1_500)
    assert truncated
    assert dropped == len(CHAT) - len(messages)
    assert prompt_bound(messages) <= 1_500


def test_what_cannot_fit_raises_in_one_function_and_is_cut_to_the_minimum_in_the_other() -> None:
    huge = [{"role": "system", "content": "s"}, user("word " * 2_000)]
    with pytest.raises(ContextOverflowError):
        enforce_context_limit(huge, 500)
    assert trim_conversation(huge, 500) == huge


@pytest.mark.parametrize("room", [-1, 0, 1, 10, 100_000])
def test_no_messages_yield_no_messages(room: int) -> None:
    assert enforce_context_limit([], room) == ([], False, 0)
    assert trim_conversation([], room) == []


def test_trim_conversation_never_raises_whatever_its_options() -> None:
    assert trim_conversation(CHAT, -5)
    assert trim_conversation(CHAT, 100, {"no_such_key": 1})


@given(st.lists(MESSAGE_LIKE | JUNK, max_size=8) | JUNK, st.integers() | JUNK, OPTIONS | JUNK)
def test_trim_conversation_never_raises_on_any_junk(messages: Any, target: Any, options: Any) -> None:
    trimmed = trim_conversation(messages, target, options)
    assert all(isinstance(message["role"], str) for message in trimmed)
    json.dumps(trimmed)


@given(st.lists(MESSAGE_LIKE, max_size=8), st.integers(1, 3_000), st.booleans())
def test_malformed_messages_make_a_well_formed_prompt(
    messages: list[dict[str, Any]], window: int, enabled: bool
) -> None:
    config = ContextConfig(max_context_tokens=window, enabled=enabled)
    try:
        prompt = build_final_prompt(messages, config)
    except ContextOverflowError:
        return
    assert broken_rules(prompt.messages) == []
    assert sum(prompt.report.fates.values()) == len(prompt.report.rows) == len(messages)
    assert build_final_prompt(messages, config, plan=prompt.plan).messages == prompt.messages
    json.dumps([prompt.messages, prompt.plan.to_json()])


def test_an_empty_part_of_the_system_message_is_not_sent() -> None:
    parts = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": ""}]
    prompt = build_final_prompt([{"role": "system", "content": parts}, user("hi")], ContextConfig())
    assert prompt.messages[0]["content"] == parts[:1]


def test_entries_that_are_no_messages_are_left_out() -> None:
    assert trim_conversation([None, "hello", user("hi"), 7], 1_000) == [user("hi")]  # type: ignore[list-item]
    assert trim_conversation({"role": "user"}, 10) == []  # type: ignore[arg-type]


def test_invalid_options_yield_the_minimum() -> None:
    assert trim_conversation(CHAT, 10**400) == CHAT
    assert trim_conversation(CHAT, 1_000, {"tools": 5}) == [CHAT[0], CHAT[-2]]
    assert trim_conversation(CHAT, 1_000, {"preserve_recent_turns": 1.5}) == [CHAT[0], CHAT[-2]]


def test_a_masked_result_counts_as_truncated() -> None:
    messages = [{"role": "system", "content": "s"}, user("work")]
    for number in range(12):
        messages += [assistant("", (f"c{number}", "run")), tool(f"c{number}", "a line of output\n" * 40)]
    limited = enforce_context_limit(messages, 100_000)
    assert any("[result masked" in (message["content"] or "") for message in limited.messages)
    assert limited.truncated
