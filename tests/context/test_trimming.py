"""The two short ways in."""

from __future__ import annotations

import pytest

from rolling_chat.context import ContextOverflowError, enforce_context_limit, prompt_bound, trim_conversation
from tests.support.conversations import assistant, tool, user

CHAT = [{"role": "system", "content": "s"}] + [
    message
    for n in range(30)
    for message in (user(f"q{n} " + "word " * 40), assistant(f"a{n} " + "word " * 40))
]


def test_messages_within_the_limit_come_back_untouched() -> None:
    assert enforce_context_limit(CHAT, 100_000) == (CHAT, False, 0)


def test_older_messages_leave_until_the_rest_fits() -> None:
    messages, truncated, dropped = enforce_context_limit(CHAT, 1_500)
    assert truncated
    assert dropped == len(CHAT) - len(messages)
    assert prompt_bound(messages) <= 1_500


def test_what_cannot_fit_is_an_error_for_one_and_the_least_for_the_other() -> None:
    huge = [{"role": "system", "content": "s"}, user("word " * 2_000)]
    with pytest.raises(ContextOverflowError):
        enforce_context_limit(huge, 500)
    assert trim_conversation(huge, 500) == huge


def test_trim_conversation_never_raises_whatever_it_is_told() -> None:
    assert trim_conversation([], 10) == []
    assert trim_conversation(CHAT, -5)
    assert trim_conversation(CHAT, 100, {"no_such_key": 1})


def test_a_masked_result_counts_as_truncated() -> None:
    messages = [{"role": "system", "content": "s"}, user("work")]
    for number in range(12):
        messages += [assistant("", (f"c{number}", "run")), tool(f"c{number}", "a line of output\n" * 40)]
    limited = enforce_context_limit(messages, 100_000)
    assert any("[result masked" in (message["content"] or "") for message in limited.messages)
    assert limited.truncated
