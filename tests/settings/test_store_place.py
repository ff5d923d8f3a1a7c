"""Where sessions are saved: the user's own word, and never with a password in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.load import load_settings
from rolling_chat.settings.paths import find_paths
from rolling_chat.settings.project_files import PROJECT_FILE
from rolling_chat.settings.store_place import is_begun, store_place
from rolling_chat.settings.trust import FolderTrust

ADDRESS = "postgresql://ada@localhost/sessions"


def test_sessions_are_in_a_file_here_unless_the_settings_say_otherwise(tmp_path: Path) -> None:
    paths = find_paths({"ROLLING_CHAT_HOME": str(tmp_path / "home")})
    settings = load_settings(paths, tmp_path, {})
    assert store_place(settings, paths) == paths.database
    assert not is_begun(paths.database)
    settings = load_settings(paths, tmp_path, {"ROLLING_CHAT_SESSIONS_STORE": ADDRESS})
    assert store_place(settings, paths) == ADDRESS
    assert is_begun(ADDRESS)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:hush-hush@localhost/sessions",
        "postgresql://ada@localhost/sessions?password=hush-hush",
        "postgresql://ada:hush-hush@localhost/sessions?password=hush-hush&sslmode=require",
    ],
)
def test_an_address_with_a_password_is_refused_without_showing_it(tmp_path: Path, address: str) -> None:
    paths = find_paths({"ROLLING_CHAT_HOME": str(tmp_path / "home")})
    with pytest.raises(SettingsError, match="its password belongs in PGPASSWORD") as caught:
        load_settings(paths, tmp_path, {}, [f"sessions.store={address}"])
    assert "hush" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_address_says_what_one_looks_like(tmp_path: Path) -> None:
    paths = find_paths({"ROLLING_CHAT_HOME": str(tmp_path / "home")})
    with pytest.raises(
        SettingsError, match=r'an address such as "postgresql://.*it begins with postgresql://'
    ):
        load_settings(paths, tmp_path, {}, ["sessions.store=mysql://localhost/sessions"])


def test_not_even_a_trusted_project_sends_sessions_elsewhere(tmp_path: Path) -> None:
    paths = find_paths({"ROLLING_CHAT_HOME": str(tmp_path / "home")})
    folder = tmp_path / "project"
    (folder / PROJECT_FILE).parent.mkdir(parents=True)
    (folder / PROJECT_FILE).write_text("[sessions]\nstore = 'postgresql://its:hush-hush@its.example.org/x'\n")
    paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text(f"trusted_folders = ['{folder}']\n")
    settings = load_settings(paths, folder, {}, trust=FolderTrust(folder, paths, everything=True))
    assert settings.sessions.store == ""
    (warning,) = settings.warnings
    assert "a project may not set this" in warning
    assert "hush" not in warning
