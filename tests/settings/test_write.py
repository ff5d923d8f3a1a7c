"""Writing one setting back leaves everything else as it was."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.json_schema import schema_text
from rolling_chat.settings.load import load_settings
from rolling_chat.settings.paths import Paths, find_paths
from rolling_chat.settings.write import save_setting


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Paths in a folder that does not exist yet."""
    return find_paths({"ROLLING_CHAT_HOME": str(tmp_path / "not" / "yet")})


def written(paths: Paths, text: str) -> None:
    paths.config_file.parent.mkdir(parents=True)
    paths.config_file.write_text(text)


def test_the_first_setting_makes_folder_and_file(paths: Paths) -> None:
    save_setting(paths, "theme", "daylight")
    assert paths.config_file.read_text() == '#:schema ./config.schema.json\ntheme = "daylight"\n'
    assert stat.S_IMODE(paths.config_file.stat().st_mode) == 0o600


def test_a_new_file_names_the_schema_that_is_written_beside_it(paths: Paths) -> None:
    save_setting(paths, "context.trim_to", 0.5)
    assert paths.schema_file.read_text() == schema_text()
    paths.schema_file.write_text("of another version")
    save_setting(paths, "theme", "daylight")
    assert paths.schema_file.read_text() == schema_text()


def test_a_file_of_the_users_own_gets_no_schema(paths: Paths) -> None:
    written(paths, 'model = "x"\n')
    save_setting(paths, "theme", "daylight")
    assert paths.config_file.read_text() == 'model = "x"\ntheme = "daylight"\n'
    assert not paths.schema_file.exists()


def test_a_schema_that_cannot_be_written_stops_nothing(paths: Paths) -> None:
    paths.schema_file.mkdir(parents=True)
    save_setting(paths, "theme", "daylight")
    assert 'theme = "daylight"' in paths.config_file.read_text()


def test_comments_order_and_other_keys_stay(paths: Paths) -> None:
    written(
        paths,
        '# mine\nmodel = "x"  # the cheap one\n\n'
        "[context]\ntrim_to = 0.5 # lower\n\n"
        '[agent]\napprovals = "edits"\n',
    )
    save_setting(paths, "model", "y#1")
    save_setting(paths, "context.trim_to", 0.7)
    save_setting(paths, "context.enabled", True)
    save_setting(paths, "theme", "daylight")
    save_setting(paths, "agent.tools", ("read_file",))
    save_setting(paths, 'models."openai/gpt-4.1".max_input_tokens', 8192)
    assert paths.config_file.read_text() == (
        '# mine\nmodel = "y#1"  # the cheap one\ntheme = "daylight"\n\n'
        "[context]\ntrim_to = 0.7  # lower\nenabled = true\n\n"
        '[agent]\napprovals = "edits"\ntools = [\n    "read_file",\n]\n\n'
        '[models."openai/gpt-4.1"]\nmax_input_tokens = 8192\n'
    )


@pytest.mark.parametrize(
    "text",
    [
        'model = """\nmodel = 3\n"""\n',
        "context = { enabled = false, trim_to = 0.5 }\n",
        "context.enabled = false\ncontext.trim_to = 0.5\n",
        '[agent]\ntools = [\n  "read_file",  # a # b\n]\n',
        "[ context ]\n'enabled' = false\n",
        '"model" = "x"',
        '[context] # [agent]\nsummary_model = "a # b"',
        "",
    ],
)
@pytest.mark.parametrize(
    ("key", "value"),
    [("model", "new"), ("context.enabled", True), ("agent.tools", "none"), ("context.summary_model", "m")],
)
def test_however_the_file_is_written_it_means_the_same_afterwards(
    paths: Paths, text: str, key: str, value: object
) -> None:
    written(paths, text)
    expected = tomllib.loads(text)
    *tables, last = key.split(".")
    inner = expected
    for table in tables:
        inner = inner.setdefault(table, {})
    inner[last] = value
    save_setting(paths, key, value)
    assert tomllib.loads(paths.config_file.read_text()) == expected


@given(model=st.text().filter(str.isprintable), names=st.lists(st.text(min_size=1), max_size=3))
def test_what_was_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, model: str, names: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("saved")
    paths = find_paths({"ROLLING_CHAT_HOME": str(folder)})
    save_setting(paths, "model", model)
    for name in names:
        if name.isprintable() and not (name[0] == name[-1] and name[0] in "'\""):
            save_setting(paths, f'models."{name}".max_input_tokens', 5)
            assert load_settings(paths, folder, {}).models[name].max_input_tokens == 5
    assert load_settings(paths, folder, {}).model == model


@pytest.mark.parametrize(
    ("key", "value"), [("model", 3), ("context.enabled", 1), ("context.enbled", True), ("theme", None)]
)
def test_what_could_not_be_loaded_is_not_saved(paths: Paths, key: str, value: object) -> None:
    with pytest.raises(SettingsError):
        save_setting(paths, key, value)
    assert not paths.config_file.exists()


def test_a_file_that_is_not_valid_is_left_as_it_is(paths: Paths) -> None:
    written(paths, "model = \n")
    with pytest.raises(SettingsError, match="line 1"):
        save_setting(paths, "theme", "daylight")
    assert paths.config_file.read_text() == "model = \n"


def test_a_linked_file_stays_a_link_and_keeps_its_mode(paths: Paths, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "rolling.toml"
    target.parent.mkdir()
    target.write_text('model = "x"\n')
    target.chmod(0o640)
    paths.config_file.parent.mkdir(parents=True)
    paths.config_file.symlink_to(target)
    save_setting(paths, "theme", "daylight")
    assert paths.config_file.is_symlink()
    assert target.read_text() == 'model = "x"\ntheme = "daylight"\n'
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert [path.name for path in target.parent.iterdir()] == ["rolling.toml"]


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    paths = find_paths({"ROLLING_CHAT_HOME": str(tmp_path / "file" / "home")})
    with pytest.raises(SettingsError) as caught:
        save_setting(paths, "theme", "daylight")
    assert str(caught.value).isprintable()
