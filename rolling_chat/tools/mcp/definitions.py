"""What a server says of a tool, made fit to be sent to any model: bounded, closed, of plain characters.

A server may say anything. References are replaced by what they name, so that none leads out of the schema or
round in a circle; what no provider takes makes the tool unusable, which is said, and harms no other tool.
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
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # Anthropic takes no others
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
    """A tool that cannot be offered to a model; the text says why, in a few words."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool of a server: its own name, the name for the model, and the schema that is offered."""

    own_name: str
    name: str
    schema: dict[str, Json]


def define(own_name: str, name: str, said: JsonObject) -> Definition:
    """Return the definition of a tool from what its server says of it. Raises UnusableToolError."""
    text = said.get("description") or said.get("title") or ""
    description = plain_text(text if isinstance(text, str) else "", MAX_DESCRIPTION)
    schema = function_schema(name, description, {})
    schema["function"]["parameters"] = parameters_of(said.get("inputSchema"))
    return Definition(own_name, name, schema)


def plain_text(text: str, most: int) -> str:
    """Return foreign text with control characters shown as codes, cut to `most` characters."""
    text = without_controls(normalize_text(text[: 2 * most])).strip()
    return text if len(text) <= most else f"{text[: most - 1]}…"


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
    """Return a schema with the properties of its variants, as an object of which each is a part."""
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
    """Return the properties whose names providers take. Raises UnusableToolError if another is needed."""
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    needed = set(_listed(schema.get("required")))
    odd = [name for name in {*properties, *needed} if not _PROPERTY.fullmatch(name)]
    if needed.intersection(odd):
        raise UnusableToolError("it needs an argument with a name that no model can be given")
    usable = {name: value for name, value in properties.items() if name not in odd}
    return {name: value if isinstance(value, Mapping) else {} for name, value in usable.items()}


def _names_alone(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return a long schema reduced to names and types. Raises UnusableToolError if that is too long."""
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
    # some providers refuse the whole request for one schema that is none
    jsonschema: Any = import_module("jsonschema")
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except (jsonschema.SchemaError, RecursionError):
        raise UnusableToolError("its schema is no JSON Schema") from None


def _literal(key: str, value: Json) -> dict[str, Json]:
    """Return a value that is no schema under its key; nothing if it is long."""
    text = json.dumps(value)
    if len(text) > _MAX_LITERAL:
        return {}
    return {key: json.loads(normalize_text(json.dumps(value, ensure_ascii=False)))}


class _Flattener:
    """Copies a schema with its references replaced; beyond some bounds anything is allowed."""

    def __init__(self, root: Mapping[str, Json]) -> None:
        self._root = root
        self._nodes = 0

    def flat(self, value: Json, within: tuple[str, ...], depth: int, *, by_name: bool = False) -> Json:
        """Return a part of the schema; `within` are the references that led to it."""
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
        """Return what a reference within the schema names; None for any other, or nothing."""
        if not reference.startswith("#"):
            return None
        found: Json = self._root
        for part in filter(None, reference[1:].split("/")):
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                return None
            found = found[key]
        return found
