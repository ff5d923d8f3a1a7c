"""`rolling-chat settings`: every setting with where it comes from, and the schema of the file."""

from __future__ import annotations

import json

from rolling_chat.settings.schema import ANY, RULES
from tests.support.program import Program


def test_every_setting_is_listed_with_its_value_and_where_it_comes_from(program: Program) -> None:
    ran = program("settings", "-c", "theme=daylight")
    rows = {line.split()[0]: line.split()[1:] for line in ran.out.splitlines()}
    assert len(rows) == sum(ANY not in path for path in RULES)
    assert rows["theme"] == ['"daylight"', "command", "line"]
    assert rows["context.trim_to"] == ["0.6", "default"]


def test_settings_of_a_model_are_listed_by_its_name(program: Program) -> None:
    ran = program("settings", "--json", "-c", 'models."gpt-4.1".max_input_tokens=8192')
    found = json.loads(ran.out)['models."gpt-4.1".max_input_tokens']
    assert found == {"value": 8192, "from": "command line"}


def test_the_schema_is_one_of_json_schema(program: Program) -> None:
    schema = json.loads(program("settings", "--schema").out)
    assert schema["properties"]["context"]["properties"]["trim_to"]["default"] == 0.6


def test_a_setting_that_is_not_allowed_is_one_line(program: Program) -> None:
    ran = program("settings", "-c", "context.trim_to=7")
    assert ran.code == 2
    assert "context.trim_to = 7: must be" in ran.err
