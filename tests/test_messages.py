"""Messages in and out of OpenAI's format."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from rolling_chat.messages import (
    Message,
    Usage,
    count_characters,
    count_text_bytes,
    has_pictures,
    is_spoken,
    pack_contents,
)
from rolling_chat.text_compression import Packed
from tests.support.conversations import conversations


@given(conversations())
def test_a_message_survives_the_way_there_and_back(messages: list[dict[str, object]]) -> None:
    for message in messages:
        assert Message.from_dict(Message.from_dict(message).to_dict()) == Message.from_dict(message)
        assert json.loads(json.dumps(Message.from_dict(message).to_dict())) == message


def test_fields_that_are_not_the_formats_are_kept_unread() -> None:
    message = Message.from_dict({"role": "assistant", "content": "x", "signature": "abc"})
    assert message.extras == {"signature": "abc"}
    assert message.to_dict()["signature"] == "abc"
    assert "signature" not in message.to_dict(with_extras=False)


def test_arguments_given_as_an_object_become_their_json() -> None:
    data = {
        "role": "assistant",
        "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"a": [1]}}}],
    }
    assert Message.from_dict(data).tool_calls[0].arguments == '{"a": [1]}'


def test_content_of_a_wrong_type_becomes_text() -> None:
    assert Message.from_dict({"role": "user", "content": 7}).text == "7"
    assert Message.from_dict({"role": "user", "content": {"a": 1}}).text == '{"a": 1}'
    assert Message.from_dict({"role": "user", "content": None}).content == ""


def test_costs_add_up_where_any_is_known() -> None:
    assert (Usage(1, 2, cost=0.5) + Usage(3, 4)).cost == 0.5
    assert (Usage(1) + Usage(2)).cost is None


def test_asking_for_pictures_opens_no_compressed_text(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [Message("user", f"{number} " + "a long text " * 100) for number in range(3)]
    picture = Message("user", ({"type": "image_url", "image_url": {"url": "data:,"}},))
    pack_contents(messages)
    monkeypatch.setattr(Packed, "text", property(lambda _: pytest.fail("it was opened")))
    assert [has_pictures(one) for one in (*messages, picture)] == [False, False, False, True]


def test_asking_for_the_size_of_a_text_opens_no_compressed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{number} long téxt 🙂 \udcff " * 100 for number in range(3)] + [" " * 500, "short", ""]
    messages = [Message("user", text) for text in texts]
    pack_contents(messages)
    monkeypatch.setattr(Packed, "text", property(lambda _: pytest.fail("it was opened")))
    assert list(map(count_characters, messages)) == list(map(len, texts))
    assert list(map(count_text_bytes, messages)) == [
        len(text.encode("utf-8", "surrogatepass")) for text in texts
    ]
    assert list(map(is_spoken, messages)) == [bool(text.strip()) for text in texts]
