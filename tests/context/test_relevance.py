"""The worth of messages: by names shared with the newest ones, by size and by age."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rolling_chat.context import ContextConfig, ContextPlan, Fate, FinalPrompt, build_final_prompt
from tests.support.conversations import assistant, tool, user
from tests.support.prompt_rules import broken_rules

PAGE = "a line of output that says very little\n" * 55  # about 500 tokens


def _call(number: int, command: str) -> dict[str, Any]:
    function = {"name": "run_command", "arguments": json.dumps({"command": command})}
    calls = [{"id": f"c{number}", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _session(turns: int, of_interest: int) -> list[dict[str, Any]]:
    """Turns with a result each, one of which names what the last request is about."""
    messages = []
    for number in range(turns):
        said = "src/lexer.py: parse_tokens\n" + PAGE[:400] if number == of_interest else "nothing\n" + PAGE
        messages += [user(f"go on {number}"), _call(number, f"step{number}"), tool(f"c{number}", said)]
        messages.append(assistant("done"))
    return [*messages, user("why does parse_tokens fail in src/lexer.py?")]


def _build(messages: list[dict[str, Any]], **keys: Any) -> FinalPrompt:
    prompt = build_final_prompt(messages, ContextConfig(**keys), model="gpt-4o")
    assert broken_rules(prompt.messages) == []
    return prompt


@pytest.mark.parametrize(("strategy", "stays"), [("priority", True), ("age", False), ("oldest-first", False)])
def test_an_older_result_stays_that_names_what_is_asked_about(strategy: str, stays: bool) -> None:
    messages = _session(9, of_interest=4)
    prompt = _build(messages, max_history_tokens=3_000, preserve_recent_turns=1, trim_strategy=strategy)
    assert any("src/lexer.py: parse_tokens" in (said["content"] or "") for said in prompt.messages) == stays
    assert prompt.report.count(Fate.MASKED, Fate.OMITTED) > 0


def test_the_report_says_why_a_result_left_and_so_does_a_plan_that_was_stored() -> None:
    messages = _session(9, of_interest=1)
    again = [_call(20, "step3"), tool("c20", "other\n" + PAGE), assistant("done")]
    messages = [*messages[:-1], user("again"), *again, messages[-1]]
    keys: dict[str, Any] = {"max_history_tokens": 3_800, "preserve_recent_turns": 1, "trim_to": 1.0}
    prompt = _build(messages, **keys)
    reasons = {row.reason for row in prompt.report.rows if row.fate is Fate.MASKED}
    assert "superseded: same command run again" in reasons
    assert "an older result; it shares no name with the newest messages" in reasons
    stored = ContextPlan.from_json(json.loads(json.dumps(prompt.plan.to_json())))
    later = build_final_prompt(messages, ContextConfig(**keys), model="gpt-4o", plan=stored)
    assert list(later.report.rows) == list(prompt.report.rows)


def test_a_plan_of_an_earlier_version_has_the_reason_that_there_was() -> None:
    messages = _session(9, of_interest=1)
    keys: dict[str, Any] = {"max_history_tokens": 3_000, "preserve_recent_turns": 1}
    prompt = _build(messages, **keys)
    data = prompt.plan.to_json()
    del data["reasons"]
    plan = ContextPlan.from_json(data)
    again = build_final_prompt(messages, ContextConfig(**keys), model="gpt-4o", plan=plan)
    assert again.messages == prompt.messages
    masked = {row.reason for row in again.report.rows if row.fate is Fate.MASKED}
    assert masked == {"an older result"}
