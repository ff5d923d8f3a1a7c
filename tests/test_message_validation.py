"""Fields of the wrong type."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from rolling_chat.message_validation import UNREADABLE, normalize_message
from rolling_chat.messages import Message
from tests.support.conversations import MESSAGE_LIKE, nested


def test_a_sound_message_is_itself() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "index": 0, "function": {"name": "f", "arguments": "{}"}}],
    }
    assert normalize_message(message) is message
    of_another_kind = {"role": "assistant", "tool_calls": [{"id": "a", "type": "custom", "custom": {}}]}
    assert normalize_message(of_another_kind) is of_another_kind


def test_what_a_field_of_the_wrong_type_says_is_kept_as_text() -> None:
    message = {
        "role": "assistant",
        "content": {"answer": 42},
        "tool_calls": [{"id": 7, "function": {"name": "f", "arguments": {"path": "a.py"}}}, "nonsense"],
        "name": 1,
    }
    assert normalize_message(message) == {
        "role": "assistant",
        "content": '{"answer": 42}',
        "tool_calls": [{"id": "7", "function": {"name": "f", "arguments": '{"path": "a.py"}'}}],
        "name": "1",
    }
    assert normalize_message({"content": ["one", 2, {"text": "three"}, {"type": "text"}]}) == {
        "role": "user",
        "content": [
            {"type": "text", "text": "one"},
            {"type": "text", "text": "2"},
            {"type": "text", "text": "three"},
            {"type": "text", "text": '{"type": "text"}'},
        ],
    }


def test_the_id_of_a_call_and_that_of_its_result_become_the_same_text() -> None:
    call = Message.from_dict({"role": "assistant", "tool_calls": [{"id": 7, "function": {"name": "f"}}]})
    result = Message.from_dict({"role": "tool", "tool_call_id": 7, "content": "done"})
    assert call.tool_calls[0].id == result.tool_call_id == "7"


def test_calls_stay_with_the_assistants_messages_and_no_list_of_them_is_empty() -> None:
    calls = [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]
    assert normalize_message({"role": "user", "content": "x", "tool_calls": calls}) == {
        "role": "user",
        "content": "x",
    }
    assert "tool_calls" not in normalize_message({"role": "assistant", "content": "x", "tool_calls": []})


def test_the_developers_message_is_the_system_message() -> None:
    assert Message.from_dict({"role": "developer", "content": "be brief"}).role == "system"


@pytest.mark.parametrize("value", [nested(5_000), 10**5_000], ids=["nested too deep", "a number too long"])
def test_what_nobody_could_write_as_json_is_not_taken_along(value: Any) -> None:
    for field in ("name", "tool_call_id", "vendor_field"):
        assert normalize_message({"role": "user", field: value})[field] == UNREADABLE
    assert Message.from_dict({"role": "user", "content": value}).text == UNREADABLE
    part = {"type": "thing", "thing": value}
    assert normalize_message({"role": "user", "content": [part]})["content"] == [
        {"type": "text", "text": UNREADABLE}
    ]


@given(MESSAGE_LIKE)
def test_whatever_an_object_holds_it_becomes_a_message(data: dict[str, Any]) -> None:
    normalized = normalize_message(data)
    assert normalize_message(normalized) is normalized
    message = Message.from_dict(data)
    assert message == Message.from_dict(normalized)
    assert isinstance(message.text, str)
    assert isinstance(message.role, str)
    assert message.tool_call_id is None or isinstance(message.tool_call_id, str)
    json.dumps([normalized, message.to_dict()])
