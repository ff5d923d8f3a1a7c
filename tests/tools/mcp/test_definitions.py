from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.tools.mcp.definitions import MAX_DESCRIPTION, UnusableToolError, define, parameters_of


def test_a_plain_tool_is_offered_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    function = define("add", "mcp__x__add", {"description": "Add.", "inputSchema": schema}).schema["function"]
    assert function == {"name": "mcp__x__add", "description": "Add.", "parameters": schema}


def test_a_description_is_bounded_and_has_no_control_characters() -> None:
    said = {"description": "\x1b[2Jhello \u202e" + "x" * 1_000_000, "inputSchema": {}}
    description = define("x", "x", said).schema["function"]["description"]
    assert len(description) <= MAX_DESCRIPTION
    assert "\x1b" not in description


def test_references_are_replaced_by_what_they_name() -> None:
    schema = {
        "properties": {"who": {"$ref": "#/$defs/Person"}},
        "$defs": {"Person": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }
    person = {"type": "object", "properties": {"name": {"type": "string"}}}
    assert parameters_of(schema) == {"type": "object", "properties": {"who": person}}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"properties": {"child": {"$ref": "#"}}},
        {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
        {"properties": {"a": {"$ref": "https://example.com/schema.json"}}},
        {"properties": {"a": {"$ref": "#/nowhere/~1x"}}},
        {
            "properties": {"a": {"$ref": "#/$defs/d0"}},
            "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 9} for n in range(40)},
        },
    ],
)
def test_no_reference_leads_out_or_round_or_on_for_ever(schema: dict[str, object]) -> None:
    flat = parameters_of(schema)
    assert "$ref" not in json.dumps(flat)
    assert len(json.dumps(flat)) < 30_000


def test_variants_at_the_top_become_one_object() -> None:
    schema = {"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}]}
    assert parameters_of(schema) == {
        "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}
    }  # fmt: skip


def test_a_long_schema_keeps_its_names_and_types() -> None:
    long = {"type": "string", "description": "x" * 400}
    flat = parameters_of({"properties": {f"p{n}": long for n in range(100)}, "required": ["p1"]})
    assert flat["properties"]["p1"] == {"type": "string"}
    assert flat["required"] == ["p1"]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"properties": {"a": {"type": "no such type"}}}, "no JSON Schema"),
        ({"properties": {"a b": {}}, "required": ["a b"]}, "a name that no model can be given"),
        ({"properties": {f"p{n}": {"type": "string"} for n in range(1_500)}}, "too long"),
    ],
)
def test_what_no_provider_takes_is_unusable(schema: dict[str, object], why: str) -> None:
    with pytest.raises(UnusableToolError, match=why):
        parameters_of(schema)


_keys = st.sampled_from(
    [
        "type",
        "properties",
        "required",
        "$ref",
        "$defs",
        "items",
        "anyOf",
        "enum",
        "default",
        "description",
        "a",
    ]
)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=20,
)


@given(_values)
def test_anything_gives_an_object_or_is_unusable(given: object) -> None:
    try:
        schema = parameters_of(given)
    except UnusableToolError:
        return
    assert schema["type"] == "object"
    assert all(isinstance(value, dict) for value in schema["properties"].values())
