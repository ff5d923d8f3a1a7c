"""A command that asks gets nothing, ends, and says why."""

from __future__ import annotations

import sys

import pytest

from rolling_chat.tools import ToolContext
from rolling_chat.tools.input_requests import asks_for_input
from rolling_chat.tools.run_command import RunCommand


@pytest.mark.parametrize(
    ("command", "says_so"),
    [
        (f'{sys.executable} -c "input()"', True),
        ("read -p 'Sure? ' answer", True),
        ("exec < /dev/tty", False),
        ("cat; exit 1", False),
        ("echo x | while read line; do false; done; false", False),
        ("true; read x < /etc/hostname; false", False),
    ],
)
async def test_a_command_that_asks_ends_and_the_model_reads_why(
    context: ToolContext, command: str, says_so: bool
) -> None:
    text = (await RunCommand().run({"command": command}, context)).text
    assert ("[it asked for input; there is none:" in text) is says_so


@pytest.mark.parametrize(
    "output",
    [
        "sudo: a terminal is required to read the password; either use the -S option",
        "sudo: a password is required",
        "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
        "Host key verification failed.",
        "ada@host: Permission denied (publickey,password).",
        "the input device is not a TTY",
    ],
)
def test_what_programs_say_that_ask_is_known(output: str) -> None:
    assert asks_for_input("x", f"{output}\n[exit code 1]")
