"""The schema of the settings says what the program takes."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.setting_rules import Rule
from rolling_chat.settings.json_schema import settings_schema
from rolling_chat.settings.schema import ANY, RULES, KeyPath

VALUES = st.one_of(
    st.booleans(),
    st.integers(-2, 2_000_000_000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.sampled_from([word for rule in RULES.values() for word in rule.choices] + ["http://127.0.0.1:1/v1"]),
    st.lists(st.text(st.characters(codec="utf-8"), max_size=4), max_size=2),
    st.just({"a": 1}),
)


def test_it_is_a_valid_schema() -> None:
    jsonschema.Draft7Validator.check_schema(settings_schema())


def test_every_setting_has_a_sentence_that_says_what_it_does() -> None:
    for path, rule in RULES.items():
        assert rule.help.endswith("."), path


@pytest.mark.parametrize("path", RULES, ids=".".join)
@given(value=VALUES)
def test_what_the_program_takes_the_schema_takes(path: KeyPath, value: Any) -> None:
    if _is_taken(RULES[path], value):
        assert _is_valid(path, value)


@pytest.mark.parametrize("path", RULES, ids=".".join)
@given(value=VALUES)
def test_a_value_of_another_kind_or_out_of_range_is_refused_by_both(path: KeyPath, value: Any) -> None:
    rule = RULES[path]
    # to JSON 5 and 5.0 are the same; the schema knows neither the form of a rule nor control characters
    is_text = isinstance(value, str) and not rule.choices
    if not _is_taken(rule, value) and not isinstance(value, float | list) and not is_text:
        assert not _is_valid(path, value)


def test_unknown_keys_are_refused() -> None:
    validator = jsonschema.Draft7Validator(settings_schema())
    assert not validator.is_valid({"thme": "x"})
    assert not validator.is_valid({"context": {"trim": 1}})
    assert not validator.is_valid({"models": {"m": {"window": 1}}})
    assert validator.is_valid({"models": {"m": {"max_input_tokens": 1}}, "keys": {"find": ["f6"]}})


def _is_taken(rule: Rule, value: Any) -> bool:
    try:
        rule.check(value)
    except ValueError:
        return False
    return True


def _is_valid(path: KeyPath, value: Any) -> bool:
    found = value
    for name in reversed(path):
        found = {"name" if name == ANY else name: found}
    return bool(_VALIDATOR.is_valid(found))


_VALIDATOR = jsonschema.Draft7Validator(settings_schema())
