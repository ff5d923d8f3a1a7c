"""Every command line leads to a function that exists."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from rolling_chat.cli import parser
from rolling_chat.cli.parser import command_of, read_options
from tests.benchmarks.oneshot import command_lines

# they run until they are stopped, or need a database
_NOT_MEASURED = {
    "rolling_chat.cli.acp:run_acp",
    "rolling_chat.cli.interactive:run_chat",
    "rolling_chat.cli.mcp:log_in",
    "rolling_chat.cli.serve:run_serve",
    "rolling_chat.cli.session_copies:pull_sessions",
    "rolling_chat.cli.session_copies:push_sessions",
}


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
        (["settings", "--schema"], "run_settings"),
        (["completion", "fish"], "run_completion"),
        (["acp"], "run_acp"),
    ],
)
def test_a_command_is_found(argv: list[str], function: str) -> None:
    assert command_of(read_options(argv)).__name__ == function


def test_a_benchmark_measures_every_command_that_runs_once() -> None:
    lines = command_lines("s1", "file", "http://127.0.0.1:9").values()
    measured = {read_options(line).run for line in lines if line not in (["--help"], ["--version"])}
    there_are = set(_functions(parser.make_parser()))
    assert measured == there_are - _NOT_MEASURED | {
        parser._SCRIPT,
        parser._TOKEN_LOG,
    }


def _functions(of: argparse.ArgumentParser) -> Iterator[str]:
    yield of.get_default("run")
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _functions(command)
