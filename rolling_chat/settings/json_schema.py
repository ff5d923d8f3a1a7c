"""The settings as a JSON Schema, with which editors complete and check `config.toml`."""

from __future__ import annotations

import functools
import json
from typing import Any, TypeAlias

from rolling_chat.setting_rules import MAX_NUMBER, Rule
from rolling_chat.settings.schema import ANY, RULES, KeyPath, Settings

Schema: TypeAlias = dict[str, Any]

_DIALECT = "http://json-schema.org/draft-07/schema#"  # the newest that TOML editors support
_ADDRESS = r"^(https?://\S+)?$"


def settings_schema() -> Schema:
    """Return the schema of the settings file: every key with its type, limits, default and purpose."""
    root = _table()
    for path, rule in RULES.items():
        *tables, name = path
        parent = functools.reduce(_inner, tables, root)
        value = _value(rule, path)
        if name == ANY:
            parent["additionalProperties"] = value
        else:
            parent["properties"][name] = value
    # after the tables, so that readers of the schema first see what it describes
    return {"$schema": _DIALECT, "title": "Settings of Rolling Chat", **root}


def schema_text() -> str:
    """Return the schema as the text of a file."""
    return json.dumps(settings_schema(), indent=2, ensure_ascii=False) + "\n"


def _table() -> Schema:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _inner(table: Schema, name: str) -> Schema:
    """Return the table `name` within `table`, creating it if needed."""
    if name != ANY:
        inner: Schema = table["properties"].setdefault(name, _table())
        return inner
    if table["additionalProperties"] is False:
        table["additionalProperties"] = _table()
    named: Schema = table["additionalProperties"]
    return named


def _value(rule: Rule, path: KeyPath) -> Schema:
    either = list(_forms(rule))
    schema: Schema = {"description": rule.help}
    schema |= either[0] if len(either) == 1 else {"anyOf": either}
    if ANY not in path:
        default: Any = Settings()
        for name in path:
            default = getattr(default, name)
        schema["default"] = list(default) if isinstance(default, tuple) else default
    return schema


def _forms(rule: Rule) -> list[Schema]:
    """Return the schemas of a key's possible values, such as a list or a single text, a number or a word."""
    words: list[Schema] = [{"enum": list(rule.choices)}] if rule.choices else []
    if rule.kind is bool:
        return [{"type": "boolean"}]
    if rule.is_number:
        return [*words, _number(rule)]
    if rule.entry is not None:
        return [{"type": "array", "items": dict(rule.entry.schema)}]
    if rule.kind is tuple:
        lone: list[Schema] = [{"type": "string"}] if rule.one else []
        return [*words, *lone, {"type": "array", "items": {"type": "string"}}]
    if words:
        return words
    return [{"type": "string", "pattern": _ADDRESS} if rule.url else {"type": "string"}]


def _number(rule: Rule) -> Schema:
    bounds = {
        "minimum": -MAX_NUMBER if rule.least is None and rule.above is None else rule.least,
        "exclusiveMinimum": rule.above,
        "maximum": MAX_NUMBER if rule.most is None and rule.below is None else rule.most,
        "exclusiveMaximum": rule.below,
    }
    kind = "integer" if rule.kind is int else "number"
    return {"type": kind, **{name: bound for name, bound in bounds.items() if bound is not None}}
