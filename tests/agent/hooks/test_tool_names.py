"""Hooks that were written for another agent find our tools by the names that they know."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.agent.hooks.tool_names import arguments_from, hook_input, matches

FOLDER = Path("/work")


@pytest.mark.parametrize(
    ("matcher", "name"),
    [
        ("", "run_command"),
        ("Bash", "run_command"),
        ("Edit|MultiEdit|Write", "multi_edit"),
        ("Write", "write_file"),
        ("Glob", "list_files"),
        ("mcp__files__.*", "mcp__files__read"),
        ("startup|resume", "startup"),
    ],
)
def test_a_name_is_met(matcher: str, name: str) -> None:
    assert matches(matcher, name)


@pytest.mark.parametrize(
    ("matcher", "name"), [("bash", "run_command"), ("Edit", "write_file"), ("mcp__files", "mcp__files__read")]
)
def test_another_is_not(matcher: str, name: str) -> None:
    assert not matches(matcher, name)


def test_what_was_added_for_a_hook_does_not_come_back() -> None:
    arguments = {"path": "a.py", "old": "x"}
    given = hook_input(arguments, FOLDER)
    assert given == {**arguments, "file_path": "/work/a.py"}
    assert arguments_from(given, arguments, FOLDER) == arguments
    assert arguments_from({**given, "old": "y"}, arguments, FOLDER) == {"path": "a.py", "old": "y"}
    assert arguments_from({**given, "file_path": "/work/b.py"}, arguments, FOLDER)["path"] == "/work/b.py"
    assert arguments_from({**given, "path": "b.py"}, arguments, FOLDER)["path"] == "b.py"
    assert hook_input({"command": "ls"}, FOLDER) == {"command": "ls"}
