"""Settings from tables that people write."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from rolling_chat.gateway.counters import OUTCOMES
from rolling_chat.gateway.settings import DEFAULTS, read_settings


def test_later_tables_win() -> None:
    settings = read_settings([None, {"trim_to": 0.5, "headers": False}, {"trim_to": 1}])
    assert (settings.config.trim_to, settings.headers, settings.enabled) == (1, False, True)


@pytest.mark.parametrize(
    "table",
    ["yes", {"trim_to": "much"}, {"trim_to": 7}, {"trim_to": True}, {"enabled": "no"}, {"cache_ttl": "2h"},
     {"nobody_knows": 1}, {"summary_model": "gpt-4o"}, {"calibration": {}}, {"config": None}],
)  # fmt: skip
def test_what_cannot_be_used_is_told_and_left_out(table: object, caplog: pytest.LogCaptureFixture) -> None:
    assert read_settings([table]) == DEFAULTS
    assert caplog.text.count("ignored") == 1


def _table(name: str) -> list[list[str]]:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- end of {name} -->", readme, re.DOTALL)
    assert found
    return [[cell.strip(" `") for cell in row.split("|")[1:-1]] for row in found[1].splitlines()[2:]]


def test_the_readme_lists_the_settings_and_the_headers() -> None:
    own = {item.name: getattr(DEFAULTS, item.name) for item in fields(DEFAULTS)}
    rows = {name: default for name, default, _help in _table("gateway settings")}
    assert rows == {name: str(own[name]).replace("True", "true") for name in own if name in rows}
    assert own.keys() - rows.keys() == {"config", "sets_margin"}
    words = _table("gateway headers")[0][1]
    assert all(outcome in words for outcome in OUTCOMES)
