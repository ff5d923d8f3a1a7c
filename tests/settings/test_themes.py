"""The themes that come with the program, and the person's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.schema import Settings
from rolling_chat.settings.themes import COLORS, find_theme, load_themes, shipped_dir
from tests.support.colors import READABLE, contrast

OWN = 'name = "own"\ndark = true\n[colors]\n' + "".join(f'{color} = "#123abc"\n' for color in COLORS)


def test_a_dark_a_light_and_a_high_contrast_theme_are_shipped(tmp_path: Path) -> None:
    themes = load_themes(tmp_path / "none")
    assert {name: theme.dark for name, theme in themes.items()} == {
        "midnight": True,
        "daylight": False,
        "contrast": True,
    }
    assert Settings().theme in themes
    assert len({frozenset(theme.variables) for theme in themes.values()}) == 1


@pytest.mark.parametrize(
    ("name", "ratio"), [("midnight", READABLE), ("daylight", READABLE), ("contrast", 7.0)]
)
def test_every_color_can_be_read_on_every_ground(tmp_path: Path, name: str, ratio: float) -> None:
    colors = load_themes(tmp_path)[name].colors
    for ground in ("background", "surface", "panel"):
        for text in ("primary", "secondary", "accent", "foreground", "success", "warning", "error"):
            assert contrast(colors[text], colors[ground]) >= ratio, (text, ground)


def test_a_theme_of_ones_own_may_take_a_shipped_ones_place(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(OWN + '[variables]\nfooter-background = "#000 50%"\n')
    (tmp_path / "b.toml").write_text(OWN.replace('"own"', '"midnight"'))
    themes = load_themes(tmp_path)
    assert themes["own"].variables == {"footer-background": "#000 50%"}
    assert themes["midnight"].colors["primary"] == "#123abc"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (OWN.replace('"own"', '"Own One"'), 'name = "Own One": must be small letters'),
        (OWN.replace('name = "own"\n', ""), "name is missing: must be small letters"),
        (OWN.replace("dark = true", "dark = 1"), "dark = 1: must be true or false"),
        (OWN.replace('"#123abc"', '"blue"', 1), 'colors.primary = "blue": must be a color such as'),
        (OWN.replace('"#123abc"', "3", 1), "colors.primary = 3: must be a color such as"),
        (OWN.replace("primary", "primry"), 'unknown color primry = "#123abc"; did you mean primary?'),
        (OWN.replace('error = "#123abc"\n', ""), "[colors] lacks error"),
        (OWN.replace("[colors]", "[colours]"), "unknown key colours = a table; did you mean colors?"),
        (OWN + "[variables]\nx = 3", "variables.x = 3: must be a short text of a style sheet"),
        (OWN + '[variables]\nx = "red; } Screen {"', "must be a short text of a style sheet"),
        ("name = ", "line 1: is not valid TOML"),
        ("", "name is missing"),
    ],
)
def test_a_bad_theme_is_one_line_that_names_the_file(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_themes(tmp_path)
    assert str(caught.value).startswith(str(path))
    assert line in str(caught.value)
    assert str(caught.value).isprintable()


def test_an_unknown_theme_is_one_line_with_what_there_is(tmp_path: Path) -> None:
    themes = load_themes(tmp_path)
    assert find_theme(themes, "daylight").name == "daylight"
    with pytest.raises(SettingsError) as caught:
        find_theme(themes, "midnite")
    assert str(caught.value) == (
        'unknown theme "midnite"; did you mean midnight?; there are: contrast, daylight, midnight'
    )


def test_an_unpacked_wheel_brings_its_own_themes(tmp_path: Path) -> None:
    package = shipped_dir().parent / "rolling_chat"
    installed = tmp_path / "site"
    (installed / "rolling_chat" / "themes").mkdir(parents=True)
    for source in package.rglob("*.py"):
        target = installed / "rolling_chat" / source.relative_to(package)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    (installed / "rolling_chat" / "themes" / "own.toml").write_text(OWN)
    code = """
import sys
from pathlib import Path
from rolling_chat.settings.themes import load_themes
print(*load_themes(Path(sys.argv[1])))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(installed)},
        cwd=tmp_path,
    )
    assert (done.stdout, done.stderr) == ("own\n", "")
