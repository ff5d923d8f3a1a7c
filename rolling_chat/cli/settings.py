"""`rolling-chat settings`: the settings that apply here, where each comes from, and their schema."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from rolling_chat.cli.configured import settings_of
from rolling_chat.cli.exits import Exit
from rolling_chat.cli.options import Options
from rolling_chat.settings.json_schema import schema_text
from rolling_chat.settings.load import split_key
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.schema import Settings
from rolling_chat.text import one_line

_MAX_SHOWN = 60  # characters of a value


def run_settings(options: Options, paths: Paths) -> int:
    """Print the settings as a table or JSON, or their schema. Raises SettingsError."""
    if options.schema:
        print(schema_text(), end="")
        return Exit.DONE
    settings = settings_of(options, paths)
    rows = {key: (_value_of(settings, key), origin) for key, origin in sorted(settings.origins.items())}
    if options.json:
        found = {key: {"value": value, "from": origin} for key, (value, origin) in rows.items()}
        print(json.dumps(found, indent=2))
        return Exit.DONE
    for line in _table({key: (_shown(value), origin) for key, (value, origin) in rows.items()}):
        print(line)
    return Exit.DONE


def _value_of(settings: Settings, key: str) -> Any:
    def inner(value: Any, name: str) -> Any:
        return value[name] if isinstance(value, Mapping) else getattr(value, name)

    return functools.reduce(inner, split_key(key), settings)


def _shown(value: Any) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), _MAX_SHOWN)


def _table(rows: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    name_width = max(map(len, rows))
    value_width = max(len(value) for value, _ in rows.values())
    for key, (value, origin) in rows.items():
        yield f"{key:<{name_width}}  {value:<{value_width}}  {one_line(origin, 200)}"
