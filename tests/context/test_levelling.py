"""Leveling: the newest iteration is cut to fit, but no further than necessary."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rolling_chat.context import ContextConfig, FinalPrompt, build_final_prompt
from tests.support.conversations import assistant, tool, user

FILL: dict[str, Any] = {"reserved_output_tokens": 0, "safety_margin": 0.0}
LINE = "a line of output that says very little\n"


def build(
    messages: list[dict[str, Any]], window: int, model: str | None = "gpt-4o", **keys: Any
) -> FinalPrompt:
    config = ContextConfig(max_context_tokens=window, max_tool_result_tokens=10**9, **keys)
    return build_final_prompt(messages, config, model=model)


def filled(prompt: FinalPrompt) -> float:
    """What is sent, as a share of what might be."""
    report = prompt.report
    return report.bound / (report.window - report.reserve - report.margin)


def called(*arguments: dict[str, Any]) -> dict[str, Any]:
    """One message that calls a tool with each of `arguments`."""
    message = assistant("", *((f"c{number}", "write_file") for number in range(len(arguments))))
    for call, given in zip(message["tool_calls"], arguments, strict=True):
        call["function"]["arguments"] = json.dumps(given)
    return message


@pytest.mark.parametrize("window", range(4_000, 4_012))
@pytest.mark.parametrize("model", ["gpt-4o", "anthropic/claude-sonnet-4-5", None])
def test_a_long_name_on_the_results_does_not_cut_them_to_nothing(window: int, model: str | None) -> None:
    ids = [f"c{number}" for number in range(4)]
    results = [{**tool(one, LINE * 200), "name": "mcp__a_server__a_tool_with_a_long_name"} for one in ids]
    messages = [user("work"), assistant("", *((one, "x") for one in ids)), *results]
    assert filled(build(messages, window, model)) > 0.9


@pytest.mark.parametrize("window", range(3_000, 3_012))
def test_a_text_that_its_indicator_would_make_longer_does_not_cut_the_others_to_nothing(window: int) -> None:
    dense = "😀中é" * 12
    messages = [user("work"), assistant("", ("1", "x"), ("2", "x"), ("3", "x"))]
    messages += [tool("1", dense), tool("2", LINE * 300), tool("3", dense)]
    prompt = build(messages, window, None)
    assert filled(prompt) > 0.9
    assert prompt.messages[2]["content"] == dense


@pytest.mark.parametrize("too_many", [1, 40, 300])
def test_arguments_full_of_quotes_lose_no_more_than_they_must(too_many: int) -> None:
    messages = [
        user("write it"),
        called({"path": "a.py", "content": '{"a": 1, "b": [2]}\n' * 40}),
        tool("c0", "ok"),
    ]
    whole = build(messages, 100_000, None).report.bound
    prompt = build(messages, whole - too_many, None, **FILL)
    assert filled(prompt) > 0.9


def test_one_long_call_among_short_ones_gets_the_room_that_they_leave() -> None:
    long, short = {"path": "a.py", "content": LINE * 300}, {"path": "b.py"}
    messages = [user("write"), called(long, short, short, short), *(tool(f"c{n}", "ok") for n in range(4))]
    prompt = build(messages, 3_000, **FILL)
    assert filled(prompt) > 0.9
    calls = prompt.messages[1]["tool_calls"]
    assert [json.loads(call["function"]["arguments"]) for call in calls[1:]] == [short] * 3


@pytest.mark.parametrize("window", range(1_900, 2_500, 50))
def test_what_leaves_after_a_levelling_makes_room_for_what_was_levelled(window: int) -> None:
    ids = [f"c{number}" for number in range(40)]
    messages = [user("before " + LINE * 30), assistant("yes"), user("work")]
    messages += [assistant("", *((one, "x") for one in ids)), *(tool(one, LINE * 40) for one in ids)]
    assert filled(build(messages, window, **FILL, trim_to=1.0)) > 0.9


def test_a_result_too_short_to_be_cut_is_not_in_the_plan() -> None:
    messages = [user("work"), assistant("", ("1", "x"), ("2", "x")), tool("1", "ok"), tool("2", LINE * 300)]
    assert set(build(messages, 1_000, **FILL).plan.decisions.levels) == {3}
