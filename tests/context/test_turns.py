"""Turns, and the mending of torn transcripts."""

from __future__ import annotations

from hypothesis import given

from rolling_chat.context import group_into_turns
from rolling_chat.context.turns import MISSING_RESULT, mend
from rolling_chat.messages import Message
from tests.support.conversations import assistant, conversations, tool, torn_conversations, user
from tests.support.prompt_rules import broken_rules


def test_a_turn_is_a_user_message_and_all_that_follows_it() -> None:
    messages = [{"role": "system", "content": "s"}, user("a"), assistant("b"), user("c"), assistant("d")]
    assert group_into_turns(messages) == [[user("a"), assistant("b")], [user("c"), assistant("d")]]


def test_a_message_sent_while_the_agent_works_belongs_to_the_turn_that_runs() -> None:
    steering = {**user("also this"), "turn": "same"}
    assert group_into_turns([user("a"), assistant("b"), steering]) == [[user("a"), assistant("b"), steering]]


def test_what_stands_before_the_first_user_message_is_a_turn_of_its_own() -> None:
    assert group_into_turns([assistant("hello"), user("a")]) == [[assistant("hello")], [user("a")]]


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    entries, left_out = mend(
        [Message.from_dict(m) for m in (user("a"), assistant("", ("1", "x")), user("b"))]
    )
    assert [entry.message.text for entry in entries] == ["a", "", MISSING_RESULT, "b"]
    assert left_out == []


def test_a_result_that_answers_no_call_is_left_out() -> None:
    entries, left_out = mend([Message.from_dict(m) for m in (user("a"), tool("9", "lost"), assistant("b"))])
    assert [entry.message.text for entry in entries] == ["a", "b"]
    assert left_out == [1]


def test_repeated_ids_are_paired_by_adjacency() -> None:
    messages = [
        user("a"),
        assistant("", ("1", "x")),
        tool("1", "r"),
        assistant("", ("1", "x")),
        tool("1", "s"),
    ]
    entries, left_out = mend([Message.from_dict(m) for m in messages])
    assert [entry.index for entry in entries] == [0, 1, 2, 3, 4]
    assert left_out == []


@given(torn_conversations())
def test_whatever_was_torn_comes_out_well_formed(messages: list[dict[str, object]]) -> None:
    entries, left_out = mend([Message.from_dict(m) for m in messages])
    assert broken_rules([entry.message.to_dict() for entry in entries]) == []
    assert sorted([entry.index for entry in entries if entry.index >= 0] + left_out) == list(
        range(len(messages))
    )


@given(conversations())
def test_what_is_well_formed_is_not_touched(messages: list[dict[str, object]]) -> None:
    given_messages = [Message.from_dict(m) for m in messages]
    entries, left_out = mend(given_messages)
    assert not left_out
    assert all(entry.message is message for entry, message in zip(entries, given_messages, strict=True))
