"""JSON as people have it, and fields of the wrong type."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.messages import Message
from rolling_chat.replay.shapes import decode, sound_message

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_what_json_has_not_becomes_null() -> None:
    assert decode(b'{"a": NaN, "b": -Infinity, "c": 1e999, "d": 1.5, "a": 1}') == {
        "a": 1,
        "b": None,
        "c": None,
        "d": 1.5,
    }
    assert decode(b'\xef\xbb\xbf["x"]') == ["x"]


@pytest.mark.parametrize("text", [b"", b"{", b"nonsense", b'["\xff"]', b"[" * 100_000, b"1" * 10_000])
def test_what_is_no_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(text)


def test_a_sound_message_is_itself() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "a", "index": 0, "function": {"name": "f", "arguments": "{}"}}],
    }
    assert sound_message(message) is message


def test_what_a_field_of_the_wrong_type_says_is_kept_as_text() -> None:
    message = {
        "role": "assistant",
        "content": {"answer": 42},
        "tool_calls": [{"id": 7, "function": {"name": "f", "arguments": {"path": "a.py"}}}, "nonsense"],
        "name": 1,
    }
    assert sound_message(message) == {
        "role": "assistant",
        "content": '{"answer": 42}',
        "tool_calls": [{"id": "7", "function": {"name": "f", "arguments": '{"path": "a.py"}'}}],
        "name": "1",
    }
    assert sound_message({"content": ["one", 2]}) == {
        "role": "user",
        "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "2"}],
    }


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(("role", "content", "tool_calls", "tool_call_id", "name", "extra"), ANYTHING),
    )
)
def test_whatever_an_object_holds_it_becomes_a_message(data: dict[str, Any]) -> None:
    sound = sound_message(data)
    message = Message.from_dict(sound)
    assert isinstance(message.text, str)
    assert isinstance(message.role, str)
    assert message.tool_call_id is None or isinstance(message.tool_call_id, str)
    assert sound_message(sound) is sound
