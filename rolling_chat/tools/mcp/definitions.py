"""Convert a server's description of a tool to one that any model accepts: limited, closed, plain characters.

A server may send anything. References are replaced with their targets, so that none points outside the schema
or to itself. A tool that no provider accepts is unusable, which is reported and does not affect other tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from rolling_chat.messages import Json, JsonObject
from rolling_chat.text import normalize_text, without_controls
from rolling_chat.tools.base import function_schema

MAX_DESCRIPTION = 2_000  # characters of a tool
_MAX_NOTE = 500  # characters of a text within a schema
_MAX_LITERAL = 4_000  # characters of JSON
_MAX_SCHEMA = 20_000  # characters of JSON
_MAX_DEPTH = 16
_MAX_NODES = 2_000
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # the names that Anthropic accepts
_DROPPED = frozenset(
    {
        "$schema",
        "$id",
        "$anchor",
        "$comment",
        "$defs",
        "definitions",
        "$dynamicAnchor",
        "$vocabulary",
        "examples",
    }
)
_NOTES = frozenset({"description", "title"})
_LITERALS = frozenset({"default", "const", "enum"})
_VARIANTS = ("allOf", "anyOf", "oneOf")
_NOT_AT_TOP = frozenset({*_VARIANTS, "not", "if", "then", "else", "enum", "const"})  # refused by providers
_BY_NAME = frozenset({"properties", "patternProperties", "dependentSchemas"})
_ANYTHING: JsonObject = {"type": "object", "properties": {}}


class UnusableToolError(Exception):
    """A tool that cannot be offered to a model; the text is the reason, in a few words."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool of a server: its own name, the name for the model, and the schema that is offered."""

    own_name: str
    name: str
    schema: dict[str, Json]


def define(own_name: str, name: str, listed: JsonObject) -> Definition:
    """Return the definition of a tool from its server's list. Raises UnusableToolError."""
    text = listed.get("description") or listed.get("title") or ""
    description = plain_text(text if isinstance(text, str) else "", MAX_DESCRIPTION)
    schema = function_schema(name, description, {})
    schema["function"]["parameters"] = parameters_of(listed.get("inputSchema"))
    return Definition(own_name, name, schema)


def plain_text(text: str, limit: int) -> str:
    """Return foreign text with control characters shown as codes, cut to `limit` characters."""
    text = without_controls(normalize_text(text[: 2 * limit])).strip()
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def parameters_of(given: Json) -> JsonObject:
    """Return the schema of a tool's arguments: an object, without references. Raises UnusableToolError."""
    if not isinstance(given, Mapping):
        return _ANYTHING
    schema = _Flattener(given).flat(given, (), 0)
    if not isinstance(schema, dict):
        return _ANYTHING
    schema = _as_one_object(schema)
    schema["properties"] = _usable(schema)
    if len(json.dumps(schema)) > _MAX_SCHEMA:
        schema = _names_alone(schema)
    _require_valid(schema)
    return schema


def _as_one_object(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return a schema as one object that has the properties of all its variants."""
    properties: dict[str, Json] = {}
    variants = [one for key in _VARIANTS for one in _listed(schema.get(key)) if isinstance(one, Mapping)]
    for part in (*variants, schema):
        inner = part.get("properties")
        properties |= inner if isinstance(inner, Mapping) else {}
    kept = {key: value for key, value in schema.items() if key not in _NOT_AT_TOP and key != "required"}
    required = [name for name in _listed(schema.get("required")) if isinstance(name, str)]
    kept |= {"required": required} if required else {}
    return {**kept, "type": "object", "properties": properties}


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _usable(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return the properties with valid names. Raises UnusableToolError if another one is required."""
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    required = set(_listed(schema.get("required")))
    invalid = [name for name in {*properties, *required} if not _PROPERTY.fullmatch(name)]
    if required.intersection(invalid):
        raise UnusableToolError("it needs an argument with a name that no model can be given")
    usable = {name: value for name, value in properties.items() if name not in invalid}
    return {name: value if isinstance(value, Mapping) else {} for name, value in usable.items()}


def _names_alone(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return a long schema reduced to names and types. Raises UnusableToolError if it is still too long."""
    bare: dict[str, Json] = {
        "type": "object",
        "properties": {
            name: {"type": value["type"]}
            if isinstance(value, dict) and isinstance(value.get("type"), str)
            else {}
            for name, value in schema["properties"].items()
        },
    }
    if schema.get("required"):
        bare["required"] = schema["required"]
    if len(json.dumps(bare)) > _MAX_SCHEMA:
        raise UnusableToolError("its schema is too long")
    return bare


def _require_valid(schema: JsonObject) -> None:
    # some providers refuse a whole request because of one invalid schema
    jsonschema: Any = import_module("jsonschema")
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except (jsonschema.SchemaError, RecursionError):
        raise UnusableToolError("its schema is no JSON Schema") from None


def _literal(key: str, value: Json) -> dict[str, Json]:
    """Return a literal value under its key, or nothing if it is too long."""
    text = json.dumps(value)
    if len(text) > _MAX_LITERAL:
        return {}
    return {key: json.loads(normalize_text(json.dumps(value, ensure_ascii=False)))}


class _Flattener:
    """Copies a schema with its references replaced; parts beyond the limits allow anything."""

    def __init__(self, root: Mapping[str, Json]) -> None:
        self._root = root
        self._nodes = 0

    def flat(self, value: Json, within: tuple[str, ...], depth: int, *, by_name: bool = False) -> Json:
        """Return a part of the schema without references; `within` are the references that led to it."""
        self._nodes += 1
        if self._nodes > _MAX_NODES or depth > _MAX_DEPTH:
            return {}
        match value:
            case Mapping() if by_name:
                return {
                    normalize_text(name): self.flat(inner, within, depth + 1) for name, inner in value.items()
                }
            case Mapping():
                return self._object(value, within, depth)
            case list():
                return [self.flat(inner, within, depth + 1) for inner in value[:_MAX_NODES]]
            case str():
                return normalize_text(value)
            case _:
                return value

    def _object(self, value: Mapping[str, Json], within: tuple[str, ...], depth: int) -> Json:
        reference = value.get("$ref", value.get("$dynamicRef"))
        if isinstance(reference, str):
            named = self._named(reference) if reference not in within else None
            notes = {key: value[key] for key in _NOTES if isinstance(value.get(key), str)}
            target = {**named, **notes} if isinstance(named, Mapping) else notes
            return self.flat(target, (*within, reference), depth + 1)
        flat: dict[str, Json] = {}
        for key, inner in value.items():
            if key in _DROPPED or key.startswith(("x-", "$")):
                continue
            if key in _NOTES:
                if isinstance(inner, str):
                    flat[key] = plain_text(inner, _MAX_NOTE)
                continue
            if key in _LITERALS:
                flat |= _literal(key, inner)
                continue
            flat[key] = self.flat(inner, within, depth + 1, by_name=key in _BY_NAME)
        return flat

    def _named(self, reference: str) -> Json:
        """Return the target of a reference within the schema; None if there is none."""
        if not reference.startswith("#"):
            return None
        found: Json = self._root
        for part in filter(None, reference[1:].split("/")):
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                return None
            found = found[key]
        return found
