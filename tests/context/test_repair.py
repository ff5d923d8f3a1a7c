"""Repairing broken transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given

from rolling_chat.context.repair import (
    CONTINUATION,
    MISSING_REPLY,
    MISSING_REQUEST,
    MISSING_RESULT,
    NormalizedMessage,
    Repairer,
    repair_messages,
)
from rolling_chat.messages import Message
from tests.support.conversations import assistant, conversations, tool, torn_conversations, user
from tests.support.prompt_rules import broken_rules


def repair(*messages: dict[str, Any]) -> list[NormalizedMessage]:
    return repair_messages([Message.from_dict(message) for message in messages])


def texts(repaired: Sequence[NormalizedMessage]) -> list[str]:
    return [normalized.message.text for normalized in repaired if not normalized.is_unsendable]


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    repaired = repair(user("a"), assistant("", ("1", "x")), user("b"))
    assert texts(repaired) == ["a", "", MISSING_RESULT, MISSING_REPLY, "b"]


def test_a_result_that_answers_no_call_is_left_out() -> None:
    repaired = repair(user("a"), tool("9", "lost"), assistant("b"))
    assert texts(repaired) == ["a", "b"]
    assert [normalized.index for normalized in repaired if normalized.is_unsendable] == [1]


def test_repeated_ids_are_paired_by_adjacency() -> None:
    repaired = repair(
        user("a"), assistant("", ("1", "x")), tool("1", "r"), assistant("", ("1", "x")), tool("1", "s")
    )
    assert [normalized.index for normalized in repaired] == [0, 1, 2, 3, 4]


def test_two_requests_in_a_row_get_a_reply_between_them() -> None:
    assert texts(repair(user("a"), user("b"))) == ["a", MISSING_REPLY, "b"]


def test_an_answer_before_any_request_gets_a_request_before_it() -> None:
    repaired = repair(assistant("hello"), user("a"))
    assert texts(repaired) == [MISSING_REQUEST, "hello", "a"]
    assert repaired[1].repair


def test_two_answers_in_a_row_are_held_apart() -> None:
    assert texts(repair(user("a"), assistant("b"), assistant("c"))) == ["a", "b", CONTINUATION, "c"]


@pytest.mark.parametrize("role", ["system", "function", "nobody"])
def test_a_message_in_a_wrong_role_becomes_the_users(role: str) -> None:
    repaired = repair(user("a"), assistant("b"), {"role": role, "content": "c"})
    assert repaired[-1].message.role == "user"
    assert role in repaired[-1].repair


def test_calls_without_an_id_of_their_own_are_told_apart_by_their_order() -> None:
    for one in ("", "same"):
        repaired = repair(
            user("a"), assistant("", (one, "x"), (one, "y")), tool(one, "first"), tool(one, "second")
        )
        assert broken_rules([normalized.message.to_dict() for normalized in repaired]) == []
        assert [normalized.tool for normalized in repaired[2:]] == ["x", "y"]
        assert texts(repaired) == ["a", "", "first", "second"]


def test_a_result_that_does_not_say_what_it_answers_answers_the_oldest_open_call() -> None:
    repaired = repair(user("a"), assistant("", ("1", "x"), ("2", "y")), {"role": "tool", "content": "r"})
    assert repaired[2].message.tool_call_id == "1"
    assert repaired[2].repair
    assert texts(repaired) == ["a", "", "r", MISSING_RESULT]


def test_a_repair_continues_where_it_stopped() -> None:
    messages = [
        Message.from_dict(m) for m in (user("a"), assistant("", ("1", "x")), tool("1", "r"), user("b"))
    ]
    for cut in range(len(messages) + 1):
        repairer = Repairer()
        first = list(repairer.walk(messages[:cut], 0))
        rest = [*repairer.copy().walk(messages[cut:], cut)]
        assert [*first, *rest] == repair_messages(messages)


@given(torn_conversations())
def test_any_broken_transcript_becomes_well_formed(messages: list[dict[str, object]]) -> None:
    repaired = repair_messages([Message.from_dict(m) for m in messages[1:]], 1)
    assert broken_rules([one.message.to_dict() for one in repaired if not one.is_unsendable]) == []
    assert [normalized.index for normalized in repaired if normalized.index >= 0] == list(
        range(1, len(messages))
    )


@given(conversations())
def test_a_well_formed_transcript_is_not_changed(messages: list[dict[str, object]]) -> None:
    given_messages = [Message.from_dict(m) for m in messages[1:]]
    repaired = [normalized for normalized in repair_messages(given_messages) if normalized.index >= 0]
    assert all(
        normalized.message is message for normalized, message in zip(repaired, given_messages, strict=True)
    )
