"""Themes: the colors of the screen, as TOML files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.load import Faults, nearest, shown
from rolling_chat.settings.toml_file import read_toml
from rolling_chat.text import printable

COLORS = (
    "primary", "secondary", "accent", "foreground", "background",
    "surface", "panel", "success", "warning", "error",
)  # fmt: skip

_PACKAGE = Path(__file__).resolve().parent.parent
_HEX = re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
# variables are inserted into a style sheet, so they must not contain anything that could end a rule
_VALUE = re.compile(r"[#%.,()A-Za-z0-9 _$-]{1,80}")


@dataclass(frozen=True, slots=True)
class ThemeSpec:
    """One theme: `colors` has every name of COLORS as `#rrggbb`; `variables` are arbitrary."""

    name: str
    dark: bool
    colors: Mapping[str, str]
    variables: Mapping[str, str]


def load_themes(user_dir: Path, faults: Faults | None = None) -> dict[str, ThemeSpec]:
    """Load the shipped themes, then the user's own, which may replace a shipped one by name.

    Raises SettingsError, which names the file and the fault; with `faults` that collect, leaves the file out.
    """
    faults = faults or Faults()
    themes: dict[str, ThemeSpec] = {}
    for folder in (shipped_dir(), user_dir):
        files: list[Path] = []
        with faults.caught():
            files = _files(folder)
        for file in files:
            with faults.caught():
                theme = read_theme(file)
                themes[theme.name] = theme
    return themes


def find_theme(themes: Mapping[str, ThemeSpec], name: str) -> ThemeSpec:
    """Return the theme called `name`. Raises SettingsError, which lists the themes."""
    if name in themes:
        return themes[name]
    near = nearest(name, themes)
    hint = f"; did you mean {near}?" if near else ""
    raise SettingsError(f"unknown theme {shown(name)}{hint}; there are: {', '.join(sorted(themes))}")


def shipped_dir() -> Path:
    """Return the folder of the packaged themes, in the wheel or else in the checkout."""
    inside = _PACKAGE / "themes"
    return inside if inside.is_dir() else _PACKAGE.parent / "themes"


def read_theme(path: Path) -> ThemeSpec:
    """Read one theme file. Raises SettingsError."""
    data = read_toml(path)
    _refuse_others(path, "key", data, ("name", "dark", "colors", "variables"))
    name = data.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _fault(path, "name", name, "small letters, digits, - and _")
    dark = data.get("dark")
    if not isinstance(dark, bool):
        raise _fault(path, "dark", dark, "true or false")
    colors = _texts(path, data, "colors", _HEX, "a color such as #1e66f5")
    _refuse_others(path, "color", colors, COLORS)
    missing = [color for color in COLORS if color not in colors]
    if missing:
        raise SettingsError(f"{_name(path)}: [colors] lacks {', '.join(missing)}")
    variables = _texts(path, data, "variables", _VALUE, "a short text of a style sheet")
    return ThemeSpec(name, dark, MappingProxyType(colors), MappingProxyType(variables))


def _name(path: Path) -> str:
    return printable(str(path), 300)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.glob("*.toml") if not path.name.startswith("."))
    except OSError as error:
        raise SettingsError(f"{_name(folder)}: cannot be read: {error.strerror}") from None


def _texts(
    path: Path, data: Mapping[str, Any], table: str, form: re.Pattern[str], allowed: str
) -> dict[str, str]:
    found = data.get(table, {})
    if not isinstance(found, dict):
        raise _fault(path, table, found, f"a table, as in [{table}]")
    for key, value in found.items():
        if not isinstance(value, str) or not form.fullmatch(value):
            raise _fault(path, f"{table}.{key}", value, allowed)
        if not _NAME.fullmatch(key):
            raise _fault(path, f"{table}.{key}", value, "named in small letters, digits, - and _")
    return found


def _refuse_others(path: Path, what: str, found: Mapping[str, object], known: tuple[str, ...]) -> None:
    for key, value in found.items():
        if key not in known:
            near = nearest(key, known)
            hint = f"did you mean {near}?" if near else f"allowed: {', '.join(known)}"
            raise SettingsError(f"{_name(path)}: unknown {what} {printable(key)} = {shown(value)}; {hint}")


def _fault(path: Path, key: str, value: object, allowed: str) -> SettingsError:
    said = "is missing" if value is None else f"= {shown(value)}"
    return SettingsError(f"{_name(path)}: {printable(key)} {said}: must be {allowed}")
