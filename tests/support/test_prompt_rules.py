"""The checker finds what each provider refuses, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.conversations import assistant, tool, user
from tests.support.prompt_rules import RULES, broken_rules

SYSTEM = {"role": "system", "content": "You are careful."}
GOOD: list[list[dict[str, Any]]] = [
    [SYSTEM, user("one")],
    [user("one")],
    [SYSTEM, user("one"), assistant("two"), user("three")],
    [SYSTEM, user("one"), assistant("", ("a", "f")), tool("a", "two")],
    [SYSTEM, user("one"), assistant("wait", ("a", "f"), ("b", "f")), tool("b", "2"), tool("a", "1")],
    [
        SYSTEM,
        user("one"),
        assistant("", ("a", "f")),
        tool("a", "two"),
        assistant("", ("b", "f")),
        tool("b", "x"),
    ],
    [SYSTEM, user("one"), user("two")],
    [user("one"), {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url"}]}],
]
ALL = set(RULES)


@pytest.mark.parametrize("messages", GOOD)
@pytest.mark.parametrize("provider", RULES)
def test_a_good_prompt_breaks_no_rule(provider: str, messages: list[dict[str, Any]]) -> None:
    assert RULES[provider](messages) == []
    assert broken_rules(messages) == []


@pytest.mark.parametrize(
    ("messages", "refused_by"),
    [
        ([], ALL),
        ([SYSTEM], {"anthropic", "gemini", "mistral"}),
        ([SYSTEM, SYSTEM, user("x")], ALL),
        ([user("x"), SYSTEM], ALL),
        ([SYSTEM, {"role": "frog", "content": "x"}], ALL),
        ([SYSTEM, user("")], ALL),
        ([SYSTEM, {"role": "user", "content": []}], ALL),
        ([SYSTEM, {"role": "user", "content": [{"type": "text", "text": ""}]}], ALL),
        ([SYSTEM, {"role": "user", "content": [{"text": "x"}]}], ALL),
        ([SYSTEM, user(" \n ")], {"anthropic"}),
        ([SYSTEM, assistant("hello"), user("x")], {"anthropic", "gemini"}),
        ([assistant("hello"), user("x")], {"anthropic", "gemini", "mistral"}),
        ([user("x"), assistant("y")], {"gemini", "mistral"}),
        ([user("x"), assistant("y ")], {"anthropic", "gemini", "mistral"}),
        ([user("x"), tool("a", "orphan")], ALL),
        ([user("x"), assistant("", ("a", "f"))], ALL),
        ([user("x"), assistant("", ("a", "f")), user("y")], ALL),
        ([user("x"), assistant("", ("a", "f")), user("y"), tool("a", "late")], ALL),
        ([user("x"), assistant("", ("a", "f"), ("b", "f")), tool("a", "1")], ALL),
        ([user("x"), assistant("", ("a", "f")), tool("a", "1"), tool("a", "2")], ALL),
        ([user("x"), assistant("", ("a", "f"), ("a", "f")), tool("a", "1"), tool("a", "2")], ALL),
        ([user("x"), assistant("", ("a", "f")), tool("a", "")], ALL),
        ([user("x"), assistant("", ("a", "f")), tool("a", "1"), user("y")], {"mistral"}),
        ([user("x"), assistant("", ("a", "")), tool("a", "1")], {"openai"}),
    ],
)
def test_each_rule_is_held_by_those_who_have_it(messages: list[dict[str, Any]], refused_by: set[str]) -> None:
    assert {name for name, check in RULES.items() if check(messages)} == refused_by


def test_arguments_must_be_an_object_where_they_are_sent_as_one() -> None:
    call = assistant("", ("a", "f"))
    call["tool_calls"][0]["function"]["arguments"] = "[broken"
    messages = [user("x"), call, tool("a", "1")]
    assert {name for name, check in RULES.items() if check(messages)} == {"anthropic", "gemini"}


def test_an_empty_list_of_calls_is_no_call_to_openai() -> None:
    messages = [user("x"), assistant("y") | {"tool_calls": []}, user("z")]
    assert {name for name, check in RULES.items() if check(messages)} == {"openai"}


@pytest.mark.parametrize(
    ("id", "refused_by"),
    [
        ("abcdef123", set()),
        ("call_1", {"mistral"}),
        ("a.b", {"anthropic", "mistral"}),
        ("x" * 41, {"openai", "mistral"}),
    ],
)
def test_ids_are_looked_at_on_the_wire_only(id: str, refused_by: set[str]) -> None:
    messages = [user("x"), assistant("", (id, "f")), tool(id, "1")]
    assert {name for name, check in RULES.items() if check(messages, wire=True)} == refused_by
    assert not any(check(messages) for check in RULES.values())


@pytest.mark.parametrize(
    ("name", "refused_by"),
    [
        ("read_file", set()),
        ("mcp__server-1__tool", set()),
        ("two words", ALL),
        ("1st", {"gemini"}),
        ("a.b", {"openai", "anthropic", "mistral"}),
        ("x" * 65, {"openai", "gemini", "mistral"}),
    ],
)
def test_names_of_functions_are_looked_at_on_the_wire_only(name: str, refused_by: set[str]) -> None:
    messages = [user("x"), assistant("", ("abcdef123", name)), tool("abcdef123", "1")]
    assert {name for name, check in RULES.items() if check(messages, wire=True)} == refused_by
    assert not any(check(messages) for check in RULES.values())


def test_openai_takes_images_from_the_user_alone() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    answer = {"role": "assistant", "content": [{"type": "text", "text": "look"}, image]}
    messages = [user("x"), answer, user("y")]
    assert {name for name, check in RULES.items() if check(messages)} == {"openai"}


def test_an_id_used_again_is_refused_by_anthropic_on_the_wire() -> None:
    once = [assistant("", ("abcdef123", "f")), tool("abcdef123", "1")]
    messages = [user("x"), *once, *once]
    assert {name for name, check in RULES.items() if check(messages, wire=True)} == {"anthropic"}
