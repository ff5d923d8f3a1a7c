"""Hooks in the settings file: tables that are checked, and that a project's own file cannot make."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.json_schema import settings_schema
from rolling_chat.settings.load import load_settings
from rolling_chat.settings.project_files import PROJECT_FILE
from rolling_chat.settings.trust import FolderTrust
from tests.support.tui import make_paths

GOOD = """
[[hooks.PreToolUse]]
matcher = "run_command"
command = "check.sh"
timeout = 5

[[hooks.PreToolUse]]
command = "x"
"""


def load(tmp_path: Path, text: str):
    paths = make_paths(tmp_path)
    paths.config_file.write_text(text)
    return load_settings(paths, tmp_path, {})


def test_each_table_is_a_hook(tmp_path: Path) -> None:
    settings = load(tmp_path, GOOD)
    assert settings.hooks.PreToolUse == (
        {"matcher": "run_command", "command": "check.sh", "timeout": 5},
        {"command": "x"},
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[hooks.PreTool]]\ncommand = 'x'", "did you mean hooks.PreToolUse?"),
        ("[[hooks.Stop]]\nmatcher = 'x'", "command must be a text"),
        ("[[hooks.Stop]]\ncommand = 'x'\ntype = 'command'", "type is not known; a hook has matcher, command"),
        ("[[hooks.Stop]]\ncommand = 'x'\ntimeout = 0", "timeout must be from 1 to 600 seconds"),
        ("[[hooks.Stop]]\ncommand = 'x'\non_failure = 'x'", 'on_failure must be "continue" or "block"'),
        ("[[hooks.Stop]]\ncommand = 'x'\nmatcher = '('", "matcher is no regular expression"),
        ("hooks.Stop = 'x'", "must be a list of tables such as"),
        ("hooks.Stop = ['x']", "must be a list of tables such as"),
    ],
)
def test_a_wrong_one_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_projects_own_settings_make_none_even_in_a_trusted_folder(tmp_path: Path) -> None:
    paths, folder = make_paths(tmp_path / "home"), tmp_path / "project"
    (folder / PROJECT_FILE).parent.mkdir(parents=True)
    (folder / PROJECT_FILE).write_text(GOOD)
    paths.config_file.parent.mkdir()
    paths.config_file.write_text(f"trusted_folders = ['{folder}']\n")
    settings = load_settings(paths, folder, {}, trust=FolderTrust(folder, paths, everything=True))
    assert settings.hooks.PreToolUse == ()
    (line,) = settings.warnings
    assert "hooks.PreToolUse = a list: a project may not set this; put it in your own settings" in line


def test_editors_check_them_by_the_schema() -> None:
    schema = settings_schema()
    jsonschema.validate({"hooks": {"Stop": [{"command": "x", "timeout": 5}]}}, schema)
    for wrong in (
        {"hooks": {"Stop": [{"timeout": 5}]}},
        {"hooks": {"Stop": ["x"]}},
        {"hooks": {"Stopp": []}},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
