"""What always holds, whatever a conversation, a window, the settings and a model are."""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    Fate,
    FinalPrompt,
    build_final_prompt,
    estimate_tokens,
    prompt_bound,
)
from rolling_chat.context.turns import GOES_ON, MISSING_REPLY, MISSING_REQUEST, MISSING_RESULT, REPLY_LEFT
from rolling_chat.messages import Message
from rolling_chat.providers.protocol import Request
from rolling_chat.providers.wire import to_wire
from tests.support.conversations import MODELS, context_settings, wild_conversations
from tests.support.prompt_rules import RULES, broken_rules

Messages = list[dict[str, Any]]
Settings = dict[str, Any]

TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]
INVENTED = (MISSING_REPLY, MISSING_REQUEST, MISSING_RESULT, GOES_ON, REPLY_LEFT)
# one model of each provider whose rules are known
WIRES = {
    "openai": "openai/gpt-4o",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "gemini/gemini-2.5-pro",
    "mistral": "mistral/mistral-large-latest",
}


def build(
    messages: Messages, keys: Settings, model: str | None = "gpt-4o", **more: Any
) -> FinalPrompt | None:
    """The prompt, or None where the pipeline refuses to make one."""
    try:
        return build_final_prompt(messages, ContextConfig(**keys), tools=TOOLS, model=model, **more)
    except ContextOverflowError:
        return None


def body(prompt: FinalPrompt) -> Messages:
    """What is sent after the system message."""
    return (
        prompt.messages[1:]
        if prompt.messages[:1] and prompt.messages[0]["role"] == "system"
        else prompt.messages
    )


@given(wild_conversations(), context_settings(), MODELS, st.booleans())
def test_no_prompt_is_over(messages: Messages, keys: Settings, model: str | None, enabled: bool) -> None:
    prompt = build(messages, {**keys, "enabled": enabled}, model)
    if prompt is None:
        return
    report = prompt.report
    assert prompt_bound(prompt.messages, tools=TOOLS, model=model) == report.bound
    assert report.bound + report.reserve + report.margin <= report.window == keys["max_context_tokens"]
    assert not keys.get("input_limit") or report.bound <= keys["input_limit"]
    assert prompt.within_budget
    assert report.within_budget


@given(wild_conversations(), context_settings(), MODELS, st.booleans())
def test_the_report_adds_up(messages: Messages, keys: Settings, model: str | None, enabled: bool) -> None:
    prompt = build(messages, {**keys, "enabled": enabled}, model)
    if prompt is None:
        return
    report = prompt.report
    categories = report.totals()["categories"]
    assert sum(categories.values()) == report.token_count + report.reserve + report.margin
    assert prompt.token_count == report.token_count
    if keys.get("token_estimator", "auto") == "auto":
        assert estimate_tokens(prompt.messages, model, TOOLS) == prompt.token_count


@given(wild_conversations(), context_settings(), MODELS, st.booleans())
def test_every_message_has_exactly_one_fate(
    messages: Messages, keys: Settings, model: str | None, enabled: bool
) -> None:
    prompt = build(messages, {**keys, "enabled": enabled}, model)
    if prompt is None:
        return
    rows = prompt.report.rows
    assert [row.index for row in rows] == list(range(len(messages)))
    counted = Counter(row.fate for row in rows)
    assert {fate: counted[fate] for fate in Fate} == {fate: prompt.report.count(fate) for fate in Fate}
    assert sum(prompt.report.fates.values()) == len(messages)


@given(wild_conversations(), context_settings(), MODELS)
def test_no_prompt_is_malformed(messages: Messages, keys: Settings, model: str | None) -> None:
    prompt = build(messages, keys, model)
    if prompt is None:
        return
    assert broken_rules(prompt.messages) == []


@pytest.mark.parametrize("provider", WIRES)
@given(messages=wild_conversations(ends_with_request=True), keys=context_settings())
def test_every_provider_takes_what_is_sent(provider: str, messages: Messages, keys: Settings) -> None:
    prompt = build(messages, keys, WIRES[provider])
    if prompt is None:
        return
    request = Request(WIRES[provider], [Message.from_dict(message) for message in prompt.messages], TOOLS)
    assert RULES[provider](to_wire(request, marks=False), wire=True) == []


@given(wild_conversations(), context_settings(), MODELS)
def test_the_system_prompt_and_the_current_request_are_there_unchanged(
    messages: Messages, keys: Settings, model: str | None
) -> None:
    prompt = build(messages, keys, model)
    if prompt is None:
        return
    if messages and messages[0]["role"] == "system" and messages[0]["content"].strip():
        assert messages[0]["content"] in prompt.messages[0]["content"]
    opening = [m for m in messages[1:] if m["role"] in {"user", "system"} and m.get("turn") != "same"]
    if opening and opening[-1]["role"] == "user" and _says_something(opening[-1]):
        assert opening[-1] in prompt.messages


@given(wild_conversations(), context_settings(), MODELS)
def test_what_is_kept_is_in_order_and_unchanged_unless_the_report_says_so(
    messages: Messages, keys: Settings, model: str | None
) -> None:
    prompt = build(messages, keys, model)
    if prompt is None:
        return
    sent = iter(body(prompt))
    for row in prompt.report.rows:
        if row.fate is Fate.OMITTED or (row.fate is Fate.REPAIRED and not row.tokens_after):
            continue
        given_message = _as_sent(messages[row.index])
        if row.index == 0 and given_message["role"] == "system":
            continue
        if row.fate is Fate.SENT:
            assert any(message == given_message for message in sent), row
            continue
        role = "user" if given_message["role"] == "system" else given_message["role"]
        said = given_message["content"]
        found = next(
            (
                message
                for message in sent
                if message["role"] == role
                and (message["content"] not in INVENTED or message["content"] == said)
            ),
            None,
        )
        assert found is not None, row
        assert found != given_message or row.fate is Fate.REPAIRED, row


@given(wild_conversations(), context_settings(), MODELS)
def test_images_are_kept_or_reported(messages: Messages, keys: Settings, model: str | None) -> None:
    prompt = build(messages, keys, model)
    if prompt is None:
        return
    untouched = {Fate.SENT, Fate.REPAIRED}
    wanted = sum(
        _images(messages[row.index])
        for row in prompt.report.rows
        if row.fate in untouched and row.tokens_after
    )
    assert sum(map(_images, prompt.messages)) >= wanted


@given(wild_conversations(), context_settings(), MODELS)
def test_signed_messages_are_sent_byte_for_byte_or_not_at_all(
    messages: Messages, keys: Settings, model: str | None
) -> None:
    prompt = build(messages, keys, model)
    if prompt is None:
        return
    signed = [_as_sent(message) for message in messages if "thinking_blocks" in message]
    for message in prompt.messages:
        if "thinking_blocks" in message:
            assert message in signed


@given(wild_conversations(), context_settings(), MODELS, st.booleans())
def test_the_same_input_gives_the_same_prompt_and_stays_as_it_was(
    messages: Messages, keys: Settings, model: str | None, enabled: bool
) -> None:
    keys = {**keys, "enabled": enabled}
    before = copy.deepcopy(messages)
    first = build(messages, keys, model)
    assert messages == before
    if first is None:
        return
    again = build(before, keys, model)
    assert again is not None
    assert (again.messages, again.report, again.plan) == (first.messages, first.report, first.plan)
    assert list(again.report.rows) == list(first.report.rows)
    json.dumps([first.messages, first.plan.to_json(), first.report.totals()])


@given(wild_conversations(), context_settings(), MODELS)
def test_building_twice_changes_nothing(messages: Messages, keys: Settings, model: str | None) -> None:
    first = build(messages, keys, model)
    if first is None:
        return
    second = build(messages, keys, model, plan=first.plan)
    assert second is not None
    assert second.messages == first.messages
    assert second.plan == first.plan
    assert not second.report.trimmed


@given(wild_conversations(), context_settings(), MODELS, st.booleans())
def test_a_plan_from_a_store_is_as_good_as_one_in_memory_and_the_prefix_stands_still(
    messages: Messages, keys: Settings, model: str | None, prompt_cache: bool
) -> None:
    keys |= {"prompt_cache": prompt_cache}
    exact = keys.get("tool_result_masking", "auto") == "exact"
    exact = exact or (keys.get("tool_result_masking", "auto") == "auto" and not prompt_cache)
    plan, before = None, None
    for end in range(1, len(messages) + 1):
        if end < len(messages) and messages[end]["role"] != "assistant":
            continue
        stored = ContextPlan.from_json(json.loads(json.dumps(plan.to_json()))) if plan is not None else None
        prompt = build(messages[:end], keys, model, plan=plan)
        other = build(messages[:end], keys, model, plan=stored)
        assert (prompt is None) == (other is None)
        if prompt is None or other is None:
            continue
        assert prompt.messages == other.messages
        assert prompt.plan == other.plan
        assert prompt.report == other.report
        assert broken_rules(prompt.messages) == []
        assert prompt_bound(prompt.messages, tools=TOOLS, model=model) == prompt.report.bound
        if before is not None and not prompt.report.trimmed and not exact:
            # what only closed the earlier prompt was never said
            said = next((at for at, m in enumerate(before) if m["content"] == MISSING_RESULT), len(before))
            assert prompt.messages[:said] == before[:said]
        plan, before = prompt.plan, prompt.messages


@given(wild_conversations(), context_settings(st.integers(300_000, 900_000)), MODELS)
def test_a_short_conversation_is_the_same_on_and_off(
    messages: Messages, keys: Settings, model: str | None
) -> None:
    keys |= {"max_history_tokens": 0, "tool_result_masking": "steps", "input_limit": 0, "safety_margin": 0.1}
    on = build(messages, keys, model)
    off = build(messages, {**keys, "enabled": False}, model)
    assert on is not None
    assert off is not None
    assert on.messages == off.messages


@given(wild_conversations(), context_settings(), st.integers(1, 20_000), MODELS)
def test_with_no_plan_the_tokens_kept_never_fall_as_the_window_grows(
    messages: Messages, keys: Settings, more: int, model: str | None
) -> None:
    small = build(messages, keys, model)
    if small is None:
        return
    large = build(messages, {**keys, "max_context_tokens": keys["max_context_tokens"] + more}, model)
    assert large is not None
    # a levelled result is cut at a line end or a character, so it may come out a line shorter
    assert large.token_count >= 0.97 * small.token_count - 40


@given(wild_conversations(), context_settings(st.integers(200, 6_000)), MODELS)
def test_the_window_that_a_refusal_names_would_do(
    messages: Messages, keys: Settings, model: str | None
) -> None:
    keys |= {"input_limit": 0}
    refused = _refusal(messages, keys, model)
    if refused is None:
        return
    assert refused.current > refused.maximum
    assert refused.smallest_window > keys["max_context_tokens"]
    assert build(messages, {**keys, "max_context_tokens": refused.smallest_window}, model) is not None


def _refusal(messages: Messages, keys: Settings, model: str | None) -> ContextOverflowError | None:
    try:
        build_final_prompt(messages, ContextConfig(**keys), tools=TOOLS, model=model)
    except ContextOverflowError as error:
        return error
    return None


def _as_sent(message: dict[str, Any]) -> dict[str, Any]:
    """What tells the pipeline of a message's turn stays behind."""
    return {key: value for key, value in message.items() if key != "turn"}


def _says_something(message: dict[str, Any]) -> bool:
    content = message["content"]
    if isinstance(content, str):
        return bool(content.strip())
    return bool(content) and all(part["type"] != "text" or part["text"].strip() for part in content)


def _images(message: dict[str, Any]) -> int:
    content = message.get("content")
    return sum(part["type"] == "image_url" for part in content) if isinstance(content, list) else 0
