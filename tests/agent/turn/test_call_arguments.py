from __future__ import annotations

import pytest

from rolling_chat.agent.turn.call_arguments import parse_arguments
from rolling_chat.tools import ToolError
from rolling_chat.tools.registry import choose_tools
from tests.support.agent import call

(READ,) = choose_tools("read_file")


@pytest.mark.parametrize("text", ["", "  ", "{}", "\n{ }\n"])
def test_no_arguments_can_be_said_in_several_ways(text: str) -> None:
    assert parse_arguments(call("read_file", text), READ) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"path": ', "not valid JSON"),
        ("{'path': 'a'}", "not valid JSON"),
        ("[" * 100_000, "too deep"),
        ('{"a":' * 100_000, "too deep"),
        ("[]", "must be a JSON object"),
        ("9" * 10_000, "not valid JSON"),
    ],
)
def test_wrong_arguments_are_answered_with_the_right_shape(text: str, said: str) -> None:
    with pytest.raises(ToolError, match=said) as caught:
        parse_arguments(call("read_file", text), READ)
    assert "path (string), start (integer, optional), end (integer, optional)" in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["", '{"path": "a', '{"path": "a"'])
def test_a_call_that_was_cut_is_said_to_be_cut(text: str) -> None:
    with pytest.raises(ToolError, match="output limit in the middle of this call"):
        parse_arguments(call("read_file", text), READ, cut=True)
    assert parse_arguments(call("read_file", '{"path": "a"}'), READ, cut=True) == {"path": "a"}
