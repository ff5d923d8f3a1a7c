from __future__ import annotations

import os

import pytest

from rolling_chat.agent.turn.tool_calls import parse_arguments
from rolling_chat.events import ToolEnded
from rolling_chat.tools import ToolError
from rolling_chat.tools.registry import choose_tools
from tests.support.agent import Opened, call, calls, collect, of_kind, says

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


async def test_commands_get_the_environment_without_its_secrets_but_what_the_settings_let_through(
    opened: Opened,
) -> None:
    turn = [calls(call("run_command", '{"command": "env"}')), says("ok")]
    chat, runtime, _ = opened(*turn, approvals="all", environment=("GH_TOKEN",))
    runtime.environ = {
        "PATH": os.environ["PATH"], "PLAIN": "yes", "GH_TOKEN": "let-through", "PGPASSWORD": "sw0rdfish",
        "DATABASE_URL": "postgres://ada:sw0rdfish@db/x",
    }  # fmt: skip
    (ended,) = of_kind(await collect(chat.send("go")), ToolEnded)
    assert {"PLAIN=yes", "GH_TOKEN=let-through"} <= set(ended.message.text.splitlines())
    assert "sw0rdfish" not in ended.message.text
