"""Tool calls are described on one line."""

from __future__ import annotations

import pytest

from rolling_chat.call_lines import describe_call
from rolling_chat.messages import ToolCall


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ('{"path": "src/lexer.py"}', "read_file src/lexer.py"),
        ('{"start": 1, "path": "a.py", "end": 9}', "read_file a.py start=1 end=9"),
        ("{broken", "read_file {broken"),
        ("[1, 2]", "read_file [1, 2]"),
        ("", "read_file"),
        ("[" * 100_000, "read_file " + "[" * 100_000),
    ],
)
def test_a_call_is_one_line_whatever_the_model_wrote(arguments: str, line: str) -> None:
    assert describe_call(ToolCall("c1", "read_file", arguments)) == line
