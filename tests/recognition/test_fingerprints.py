"""Conversations are recognized by their first messages."""

from __future__ import annotations

from rolling_chat.recognition.fingerprints import Recognizer
from tests.support.conversations import assistant, tool, user


def test_equal_messages_are_one_object_and_few_are_held() -> None:
    recognizer = Recognizer(limit=2_000)
    said = [user(f"Message {number}.") for number in range(50)]
    one, other = recognizer.branch(said), recognizer.branch(said)
    assert one.prefixes == other.prefixes
    assert recognizer.branch(said[-1:]).messages[0] is other.messages[-1]
    assert recognizer._size <= 2_000


def test_a_request_may_have_ended_before_any_answer_and_before_more_of_the_user() -> None:
    messages = [user("Go."), assistant("", ("c1", "f"), ("c2", "f")), tool("c1", "x"), tool("c2", "x")]
    said = [*messages, user("Stop."), assistant("Yes."), user("Go on.")]
    assert Recognizer().branch(said).ends() == [7, 5, 4, 1]
