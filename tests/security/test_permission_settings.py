"""Whose settings may give permission, and whose may only deny it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.load import load_settings
from rolling_chat.settings.project_files import PROJECT_FILE
from rolling_chat.settings.trust import FolderTrust
from tests.support.tui import make_paths

ALLOW = "[agent.permissions]\nallow = ['run_command(git *)']\n"
DENY = "[agent.permissions]\ndeny = ['run_command(rm *)']\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "work" / PROJECT_FILE).parent.mkdir(parents=True)
    return tmp_path / "work" / PROJECT_FILE


def _load(tmp_path: Path, user: str = "", *overrides: str):
    paths = make_paths(tmp_path)
    paths.config_file.write_text(user)
    trust = FolderTrust(tmp_path / "work", paths, everything=True)
    return load_settings(paths, tmp_path / "work", {}, overrides, trust=trust)


@pytest.mark.parametrize("trusted", [True, False])
def test_a_project_never_allows_even_in_a_trusted_folder(
    tmp_path: Path, project: Path, trusted: bool
) -> None:
    project.write_text(ALLOW)
    user = f"trusted_folders = ['{tmp_path / 'work'}']" if trusted else ""
    settings = _load(tmp_path, user)
    assert not settings.agent.permissions.allow
    assert "agent.permissions.allow = a list: a project may not" in settings.warnings[0]


def test_a_project_adds_to_what_is_denied_and_takes_nothing_away(tmp_path: Path, project: Path) -> None:
    project.write_text("[agent.permissions]\ndeny = ['run_command(dd *)']\n")
    both = ("run_command(rm *)", "run_command(dd *)")
    assert _load(tmp_path, DENY).agent.permissions.deny == both
    assert _load(tmp_path).agent.permissions.deny == both[1:]
    settings = _load(tmp_path, DENY, "agent.permissions.deny=[]")
    assert settings.agent.permissions.deny == both[1:]
    assert str(project) in settings.origins["agent.permissions.deny"]
    project.write_text("[agent.permissions]\ndeny = []\n")
    assert _load(tmp_path, DENY).agent.permissions.deny == both[:1]


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("run_command(", "is no rule"),
        ("run_command(rm*)", "needs a blank before a *"),
        ("list_files(src/**)", "has a pattern, which only run_command, fetch_url and the tools"),
    ],
)
def test_a_rule_that_cannot_be_read_is_one_clear_line(tmp_path: Path, rule: str, reason: str) -> None:
    (tmp_path / "work").mkdir()
    with pytest.raises(SettingsError) as caught:
        _load(tmp_path, f"[agent.permissions]\ndeny = ['{rule}']")
    line = str(caught.value)
    assert line.isprintable()
    assert "config.toml: agent.permissions.deny = a list: must be a list of rules" in line
    assert f'"{rule}" {reason}' in line
