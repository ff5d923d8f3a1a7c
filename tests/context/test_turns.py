"""Grouping messages into turns."""

from __future__ import annotations

from rolling_chat.context import group_into_turns
from tests.support.conversations import assistant, user


def test_a_turn_is_a_user_message_and_all_that_follows_it() -> None:
    messages = [{"role": "system", "content": "s"}, user("a"), assistant("b"), user("c"), assistant("d")]
    assert group_into_turns(messages) == [[user("a"), assistant("b")], [user("c"), assistant("d")]]


def test_a_message_sent_while_the_agent_works_belongs_to_the_turn_that_runs() -> None:
    steering = {**user("also this"), "turn": "same"}
    assert group_into_turns([user("a"), assistant("b"), steering]) == [[user("a"), assistant("b"), steering]]


def test_what_stands_before_the_first_user_message_is_a_turn_of_its_own() -> None:
    assert group_into_turns([assistant("hello"), user("a")]) == [[assistant("hello")], [user("a")]]
