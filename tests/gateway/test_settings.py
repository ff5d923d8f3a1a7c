"""Settings from tables that people write."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from rolling_chat.gateway.counters import OUTCOMES
from rolling_chat.gateway.settings import DEFAULTS, read_settings


def test_later_tables_win() -> None:
    tables = [None, {"trim_to": 0.5, "headers": False}, {"trim_to": 1}]
    settings = read_settings([("the file", table) for table in tables])
    assert (settings.config.trim_to, settings.headers, settings.enabled) == (1, False, True)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("yes", "rolling_chat in the file is ignored: it takes a table of settings, not 'yes'."),
        ({"enabled": "no"}, "rolling_chat.enabled in the file is ignored: it takes true or false, not 'no'."),
        ({"trim_to": 7}, "trim_to in the file is ignored: it takes a number above 0 and at most 1, not 7."),
        ({"trim_to": True}, "it takes a number above 0 and at most 1, not True."),
        ({"cache_ttl": "2h"}, 'it takes "5m" or "1h", not \'2h\'.'),
        ({"max_context_tokens": [1, "x" * 90]}, "from 0 to 1,000,000,000, not [1, 'xxx"),
        ({"safety_margin": float("nan")}, "it takes a number from 0 to below 1, not nan."),
        (
            {"trim_too": 0.5},
            "rolling_chat.trim_too in the file is ignored: there is no such setting, but trim_to.",
        ),
        ({"config": None}, "there is no such setting"),
        ({"summary_model": "gpt-4o"}, "rolling_chat.summary_model in the file is ignored"),
        ({"line\nbreak" * 30: 1}, "there is no such setting"),
        ({7: 1}, "rolling_chat.7 in the file is ignored: there is no such setting."),
    ],
)
def test_what_cannot_be_used_is_told_on_one_line_and_left_out(
    table: object, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert read_settings([("the file", table)]) == DEFAULTS
    (record,) = caplog.records
    line = record.getMessage()
    assert told in line
    assert "\n" not in line
    assert len(line) < 200


README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_readmes_configuration_is_four_lines_and_its_settings_can_be_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert len(first.splitlines()) == 4
    config = yaml.safe_load(first)
    assert config["litellm_settings"] == {"callbacks": ["rolling_chat.gateway.handler"]}
    assert config["general_settings"]["coordination_redis"].keys() == {"host", "port"}
    config = yaml.safe_load(second)
    (model,) = config["model_list"]
    tables = (config["litellm_settings"]["rolling_chat"], model["model_info"]["rolling_chat"])
    settings = read_settings([("the README", table) for table in tables]).config
    assert (settings.max_context_tokens, settings.trim_to, settings.max_tool_result_tokens) == (
        100_000,
        0.5,
        8_000,
    )
    assert not caplog.records


def _table(name: str) -> list[list[str]]:
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- end of {name} -->", README, re.DOTALL)
    assert found
    return [[cell.strip(" `") for cell in row.split("|")[1:-1]] for row in found[1].splitlines()[2:]]


def test_the_readme_lists_the_settings_and_the_headers() -> None:
    own = {item.name: getattr(DEFAULTS, item.name) for item in fields(DEFAULTS)}
    rows = {name: default for name, default, _help in _table("gateway settings")}
    assert rows == {name: str(own[name]).replace("True", "true") for name in own if name in rows}
    assert own.keys() - rows.keys() == {"config", "sets_margin"}
    words = _table("gateway headers")[0][1]
    assert all(outcome in words for outcome in OUTCOMES)
