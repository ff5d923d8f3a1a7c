"""Where the program's files are."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.paths import find_paths


def test_one_variable_moves_all_of_it(tmp_path: Path) -> None:
    paths = find_paths({"ROLLING_CHAT_HOME": str(tmp_path)})
    for path in (paths.config_file, paths.database, paths.log_file, paths.themes_dir, paths.history_file):
        assert path.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_a_relative_home_does_not_move_with_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_paths({"ROLLING_CHAT_HOME": "here"}).config_file == tmp_path / "here" / "config.toml"


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    found = find_paths({"ROLLING_CHAT_HOME": ""})
    assert found == find_paths({})
    assert found.config_file.is_relative_to(tmp_path)
    assert found.config_file.parent.name == "rolling-chat"


def test_without_a_home_it_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> None:
        raise KeyError

    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    with pytest.raises(SettingsError, match="set ROLLING_CHAT_HOME"):
        find_paths({})
