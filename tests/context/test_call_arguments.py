"""Long arguments are shortened, stay valid JSON and never grow."""

from __future__ import annotations

import json

import pytest

from rolling_chat.context import CountMemo
from rolling_chat.context.call_arguments import shorten_arguments
from rolling_chat.context.tokens import estimator_for
from rolling_chat.messages import Message, ToolCall

count = estimator_for("gpt-4o").count_text


def shortened(arguments: str, cap: int = 50) -> str:
    message = Message("assistant", tool_calls=(ToolCall("1", "write_file", arguments),))
    return shorten_arguments(message, cap, count, CountMemo()).tool_calls[0].arguments


def test_short_values_beside_a_long_one_stay_as_they_are() -> None:
    arguments = json.dumps({"path": "a.py", "note": "a few words of it", "content": "x = 1\n" * 900})
    values = json.loads(shortened(arguments))
    assert (values["path"], values["note"]) == ("a.py", "a few words of it")
    assert "[truncated: kept first ~" in values["content"]


def test_no_value_becomes_longer() -> None:
    arguments = json.dumps({"rows": ["some words of a row"] * 200})
    assert all(len(row) <= len("some words of a row") for row in json.loads(shortened(arguments, 5))["rows"])


@pytest.mark.parametrize("depth", [200, 400, 600, 900, 5_000])
def test_deep_nesting_is_left_alone_or_cut_and_never_an_error(depth: int) -> None:
    text = '{"a":' * depth + json.dumps("word " * 400) + "}" * depth
    assert len(shortened(text)) <= len(text)


def test_half_a_surrogate_pair_can_still_be_sent() -> None:
    shortened(json.dumps({"a": "\ud800", "b": "word " * 400})).encode()


@pytest.mark.parametrize("text", ["", "no json", "[1, 2]", '"text"', '{"a": 1', "9" * 5_000])
def test_what_is_no_json_object_stays_as_it_is(text: str) -> None:
    assert shortened(text * 9, 1) == text * 9
