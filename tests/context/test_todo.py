"""The newest to-do list is in every prompt: in its call, or in the notice once that is omitted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rolling_chat.context import ContextConfig, ContextPlan, FinalPrompt, build_final_prompt
from rolling_chat.context.summary_text import TODO_HEAD
from rolling_chat.messages import Message
from rolling_chat.todo_list import list_of
from tests.support.conversations import assistant, tool, user

_CONFIG = ContextConfig(max_context_tokens=3_000, reserved_output_tokens=300, todo=True, prompt_cache=True)


def listing(number: int, *items: str) -> list[dict[str, Any]]:
    """A call that sets a list, and its result."""
    call = assistant("", (f"t{number}", "todo"))
    call["tool_calls"][0]["function"]["arguments"] = json.dumps({"items": list(items)})
    return [call, tool(f"t{number}", f"[0 of {len(items)} done]")]


def working(number: int) -> list[dict[str, Any]]:
    return [assistant("", (f"r{number}", "read_file")), tool(f"r{number}", f"line of a log {number}\n" * 60)]


def long_task(lists: int) -> list[dict[str, Any]]:
    """One turn in which the list changes after every fifth file that is read."""
    messages = [{"role": "system", "content": "You are careful."}, user("do all of it")]
    for number in range(lists):
        messages += listing(number, f"[x] part {number}", f"[>] part {number + 1}", f"[ ] part {number + 2}")
        for at in range(5):
            messages += working(5 * number + at)
    return messages


def notice_of(prompt: FinalPrompt) -> str:
    return str(prompt.messages[0]["content"]).partition(TODO_HEAD)[2].strip()


def grown(messages: list[dict[str, Any]], config: ContextConfig = _CONFIG) -> list[tuple[int, FinalPrompt]]:
    """The prompt of every request, each with the plan of the one before, as a store gives it back."""
    plan, prompts = None, []
    for end in range(2, len(messages) + 1):
        if messages[end - 1]["role"] != "assistant":
            prompt = build_final_prompt(messages[:end], config, model="gpt-4o", plan=plan)
            plan = ContextPlan.from_json(json.loads(json.dumps(prompt.plan.to_json())))
            prompts.append((end, prompt))
    return prompts


def test_the_newest_list_is_in_every_prompt() -> None:
    messages = long_task(6)
    told = 0
    for end, prompt in grown(messages):
        lists = [found for one in messages[:end] if (found := list_of(Message.from_dict(one)))]
        sent = [found for one in prompt.messages if (found := list_of(Message.from_dict(one)))]
        assert prompt.within_budget
        if lists:
            assert lists[-1] in sent or notice_of(prompt).startswith(lists[-1].text)
            told += lists[-1] not in sent
    assert told > 3, "the calls did leave"


def test_the_prefix_stays_the_same_while_a_newer_list_is_sent() -> None:
    before = None
    for _, prompt in grown(long_task(6)):
        if before is not None and not prompt.report.trimmed:
            assert prompt.messages[: len(before)] == before
        before = prompt.messages


def test_the_list_counts_as_part_of_the_system_message_in_the_report() -> None:
    messages = long_task(3)
    prompts = dict(grown(messages))
    told = next(prompt for prompt in prompts.values() if notice_of(prompt))
    plain = build_final_prompt(messages[:1], _CONFIG, model="gpt-4o").report.system
    assert told.report.system > plain + 15


def test_a_rewind_restores_the_list_of_that_point() -> None:
    messages = long_task(4)
    end, prompt = grown(messages)[-1]
    back = next(at for at in range(end - 1, 0, -1) if messages[at]["role"] == "assistant" and at < end // 2)
    again = build_final_prompt(messages[:back], _CONFIG, model="gpt-4o", plan=prompt.plan)
    lists = [found for one in messages[:back] if (found := list_of(Message.from_dict(one)))]
    sent = [found for one in again.messages if (found := list_of(Message.from_dict(one)))]
    assert lists[-1] in sent or notice_of(again).startswith(lists[-1].text)
    assert "part 5" not in str(again.messages)


def test_a_long_list_takes_no_more_than_its_share() -> None:
    items = [f"[x] {'long ' * 30}{at}" for at in range(30)] + [f"[ ] {'open ' * 30}{at}" for at in range(20)]
    messages = [{"role": "system", "content": "s"}, user("go"), *listing(0, *items)]
    for number in range(12):
        messages += working(number)
    prompt = grown(messages)[-1][1]
    assert notice_of(prompt).startswith("[ ] open open")
    assert prompt.report.system < 200


@pytest.mark.parametrize("config", [{"todo": False}, {"enabled": False, "max_context_tokens": 90_000}])
def test_no_list_is_repeated_without_the_tool_or_with_rolling_off(config: dict[str, Any]) -> None:
    keys = {"max_context_tokens": 3_000, "reserved_output_tokens": 300, "todo": True, **config}
    assert not any(notice_of(prompt) for _, prompt in grown(long_task(3), ContextConfig(**keys)))
