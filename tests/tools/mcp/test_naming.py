from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.tools.mcp.naming import MAX_NAME, server_prefixes, tool_names

TAKEN_BY_PROVIDERS = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


def test_a_tool_is_named_by_its_server_and_itself() -> None:
    prefix = server_prefixes(["github"])["github"]
    assert tool_names(prefix, ["create_issue"]) == {"create_issue": "mcp__github__create_issue"}


def test_names_that_become_alike_are_told_apart_whatever_their_order() -> None:
    names = tool_names("mcp__x__", ["a.b", "a_b", "a/b"])
    assert names["a_b"] == "mcp__x__a_b"
    assert len(set(names.values())) == 3
    assert tool_names("mcp__x__", ["a/b", "a_b", "a.b"]) == names


def test_no_rule_about_one_server_is_about_another() -> None:
    prefixes = server_prefixes(["a", "a_", "a__b", "_a", "a b"])
    assert prefixes["a"] == "mcp__a__"
    assert not any(prefix.startswith("mcp__a__") for name, prefix in prefixes.items() if name != "a")


@given(st.lists(st.text(min_size=1), min_size=1, unique=True), st.lists(st.text(), min_size=1, unique=True))
def test_every_name_is_one_that_providers_take_and_no_two_are_alike(
    servers: list[str], tools: list[str]
) -> None:
    prefixes = server_prefixes(servers)
    assert len(set(prefixes.values())) == len(servers)
    names = [name for prefix in prefixes.values() for name in tool_names(prefix, tools).values()]
    assert len(set(names)) == len(names)
    assert all(TAKEN_BY_PROVIDERS.fullmatch(name) and len(name) <= MAX_NAME for name in names)
