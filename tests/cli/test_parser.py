"""Every command line leads to a function that exists."""

from __future__ import annotations

import pytest

from rolling_chat.cli.parser import command_of, read_options


@pytest.mark.parametrize(
    ("argv", "function"),
    [
        ([], "run_chat"),
        (["--continue"], "run_chat"),
        (["-p", "x"], "run_script"),
        (["-p"], "run_script"),
        (["doctor"], "run_doctor"),
        (["-p", "x", "doctor"], "run_doctor"),
        (["doctor", "--tokens"], "run_token_log"),
        (["-p", "x", "doctor", "--tokens"], "run_token_log"),
        (["inspect", "q1"], "run_inspect"),
        (["replay", "file"], "run_replay"),
        (["sessions"], "list_sessions"),
        (["sessions", "list"], "list_sessions"),
        (["sessions", "show", "s1"], "show_session"),
        (["sessions", "export", "s1"], "export_session"),
        (["sessions", "delete", "s1"], "delete_session"),
        (["sessions", "search", "word"], "search_sessions"),
        (["sessions", "import", "file"], "import_sessions"),
    ],
)
def test_a_command_is_found(argv: list[str], function: str) -> None:
    assert command_of(read_options(argv)).__name__ == function
