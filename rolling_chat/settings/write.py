"""Write one setting back to the user's own file."""

from __future__ import annotations

import copy
import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import tomli_w

from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.json_schema import schema_text
from rolling_chat.settings.load import check_setting, dotted, split_key
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.schema import KeyPath
from rolling_chat.settings.toml_file import parse_toml, read_text, replace_file
from rolling_chat.text import printable

_SCHEMA_LINE = "#:schema ./{name}"  # read by editors that check TOML
_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?")


def save_setting(paths: Paths, key: str, value: object) -> None:
    """Set `key` (dotted, as on the command line) in the settings file.

    All other keys are kept, as are comments and order if one line can be replaced or added; otherwise the
    file is rewritten with the same keys. A new file names the schema of the settings, which is written next
    to it, for editors. Raises SettingsError for a value that is not allowed, and for an invalid file, which
    is not changed.
    """
    path = split_key(key)
    origin = printable(str(paths.config_file), 300)
    check_setting(path, value, origin)
    plain = list(value) if isinstance(value, tuple) else value
    old = read_text(paths.config_file)
    wanted = _with(parse_toml(old, paths.config_file), path, plain, origin)
    naming = _SCHEMA_LINE.format(name=paths.schema_file.name)
    new = _edited(old or f"{naming}\n", path, plain)
    replace_file(paths.config_file, new if _means(new, wanted) else tomli_w.dumps(wanted))
    if naming in new.splitlines():
        _write_schema(paths.schema_file)


def add_to_setting(paths: Paths, key: str, text: str) -> None:
    """Add `text` to a list in the settings file, unless it is there. Raises like `save_setting`."""
    found: Any = parse_toml(read_text(paths.config_file), paths.config_file)
    for part in split_key(key):
        found = found.get(part, {}) if isinstance(found, dict) else {}
    texts = found if isinstance(found, list) else []
    if text not in texts:
        save_setting(paths, key, [*texts, text])


def _write_schema(path: Path) -> None:
    """Write the schema of the settings, unless it exists; the settings work without it."""
    schema = schema_text()
    with suppress(OSError, ValueError, SettingsError):
        if not path.is_file() or path.read_text(encoding="utf-8") != schema:
            replace_file(path, schema)


def _with(table: dict[str, Any], path: KeyPath, value: object, origin: str) -> dict[str, Any]:
    changed = copy.deepcopy(table)
    inner = changed
    for depth, part in enumerate(path[:-1], start=1):
        inner = inner.setdefault(part, {})
        if not isinstance(inner, dict):
            raise SettingsError(f"{origin}: {dotted(path[:depth])} must be a table of keys")
    inner[path[-1]] = value
    return changed


def _edited(text: str, path: KeyPath, value: object) -> str:
    """Replace or add one line of `text`; the caller checks the result."""
    line = f"{tomli_w.dumps({path[-1]: value}).strip()}\n"
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    start, end = _section(lines, path[:-1])
    if start is None:
        return "".join([*lines, *(["\n"] if lines else []), f"[{dotted(path[:-1])}]\n", line])
    own = re.compile(rf"\s*{re.escape(dotted(path[-1:]))}\s*=[^#]*(#.*)?")
    for index in range(start, end):
        found = own.fullmatch(lines[index].rstrip("\r\n"))
        if found:
            comment = f"  {found[1]}" if found[1] else ""
            lines[index] = f"{line.rstrip()}{comment}\n"
            return "".join(lines)
    while end > start and not lines[end - 1].strip():
        end -= 1
    lines.insert(end, line)
    return "".join(lines)


def _section(lines: list[str], table: KeyPath) -> tuple[int | None, int]:
    """Return the range of lines with `table`'s keys; None if it has no header."""
    start = 0 if not table else None
    for index, text in enumerate(lines):
        header = _HEADER.fullmatch(text.rstrip("\r\n"))
        if not header and not text.lstrip().startswith("[["):
            continue
        if start is not None:
            return start, index
        if header and _same_table(header[1], table):
            start = index + 1
    return start, len(lines)


def _same_table(header: str, table: KeyPath) -> bool:
    return re.sub(r"\s*\.\s*", ".", header.strip()).replace("'", '"') == dotted(table)


def _means(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except ValueError:
        return False
