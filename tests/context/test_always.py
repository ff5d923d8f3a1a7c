"""What always holds of one request, whatever a conversation, a window, the settings and a model are.

`test_always_growing` has what holds from one request to the next.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import assume, example, given, settings, target
from hypothesis import strategies as st

from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    Fate,
    FinalPrompt,
    build_final_prompt,
    estimate_tokens,
)
from rolling_chat.context.encodings import ENCODINGS
from rolling_chat.messages import Message
from rolling_chat.providers.protocol import Request
from rolling_chat.providers.wire import to_wire
from tests.support.conversations import IMAGE, MODELS, context_settings, wild_conversations
from tests.support.prompt_rules import RULES, broken_rules
from tests.support.soundness import (
    TOOLS,
    assert_every_message_has_one_fate,
    assert_fits,
    assert_kept_in_order_and_unchanged,
    assert_what_never_leaves_is_there,
    with_ids,
)

Messages = list[dict[str, Any]]
Settings = dict[str, Any]

# The notice, the reply that stands for one that left, a line that says what was cut: tokens, at most.
_FRAMING = 60
# one model of each provider whose rules are known
WIRES = {
    "openai": "openai/gpt-4o",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "gemini/gemini-2.5-pro",
    "mistral": "mistral/mistral-large-latest",
}


def build(
    messages: Messages | list[Message], keys: Settings, model: str | None = "gpt-4o", **more: Any
) -> FinalPrompt | None:
    """The prompt, or None where the pipeline refuses to make one."""
    try:
        return build_final_prompt(messages, ContextConfig(**keys), tools=TOOLS, model=model, **more)
    except ContextOverflowError:
        return None


@given(wild_conversations(), context_settings(), MODELS, st.booleans())
def test_no_prompt_is_over(messages: Messages, keys: Settings, model: str | None, enabled: bool) -> None:
    keys = {**keys, "enabled": enabled}
    prompt = build(messages, keys, model)
    if prompt is not None:
        assert_fits(prompt, ContextConfig(**keys), model)


@given(wild_conversations(), context_settings(), MODELS, st.booleans())
@example([{"role": "user", "content": "x"}] * 3, {}, "anthropic/claude-sonnet-4-5", True)
def test_the_report_adds_up(messages: Messages, keys: Settings, model: str | None, enabled: bool) -> None:
    prompt = build(messages, {**keys, "enabled": enabled}, model)
    if prompt is None:
        return
    report = prompt.report
    categories = report.totals()["categories"]
    assert sum(categories.values()) == report.token_count + report.reserve + report.margin
    assert prompt.token_count == report.token_count
    if keys.get("token_estimator", "auto") == "auto":
        assert estimate_tokens(prompt.messages, model, TOOLS) == prompt.token_count <= report.bound


@pytest.mark.parametrize("estimator", ["auto", "ratio", "chars", "bytes", *ENCODINGS])
@given(messages=wild_conversations(), keys=context_settings(), model=MODELS)
@settings(max_examples=10)
@example(messages=[{"role": "user", "content": [IMAGE]}], keys={}, model="gpt-4o")
@example(messages=[{"role": "user", "content": "x" * 3_000}], keys={}, model="gpt-4o")
@example(messages=[{"role": "user", "content": "\u4e2d\u6587" * 3_000}], keys={}, model="gpt-4o")
@example(messages=[{"role": "user", "content": "one word after another " * 300}], keys={}, model="gpt-4o")
def test_no_estimate_is_above_the_bound(
    estimator: str, messages: Messages, keys: Settings, model: str | None
) -> None:
    prompt = build(messages, {**keys, "token_estimator": estimator}, model)
    if prompt is None:
        return
    assert prompt.token_count <= prompt.report.bound
    assert all(row.tokens_after <= prompt.report.bound for row in prompt.report.rows)


@given(wild_conversations(), context_settings(), MODELS, st.booleans())
def test_every_message_has_exactly_one_fate(
    messages: Messages, keys: Settings, model: str | None, enabled: bool
) -> None:
    branch = with_ids(messages)
    prompt = build(branch, {**keys, "enabled": enabled}, model)
    if prompt is not None and branch:
        assert_every_message_has_one_fate(branch, prompt)


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
    branch = with_ids(messages)
    prompt = build(branch, keys, model)
    if prompt is not None and branch:
        assert_what_never_leaves_is_there(branch, prompt)


@given(wild_conversations(), context_settings(), MODELS, st.booleans())
def test_what_is_kept_is_in_order_and_unchanged_unless_the_report_says_so(
    messages: Messages, keys: Settings, model: str | None, enabled: bool
) -> None:
    branch = with_ids(messages)
    prompt = build(branch, {**keys, "enabled": enabled}, model)
    if prompt is not None and branch:
        assert_kept_in_order_and_unchanged(branch, prompt)


@given(wild_conversations(), context_settings(), MODELS)
def test_dictionaries_and_messages_make_the_same_prompt(
    messages: Messages, keys: Settings, model: str | None
) -> None:
    plain, typed = build(messages, keys, model), build(with_ids(messages), keys, model)
    assert (plain is None) == (typed is None)
    if plain is None or typed is None or not messages:
        return
    as_sent = [Message.from_dict(_without_turn(message.to_dict())) for message in typed.messages]
    assert [Message.from_dict(message) for message in plain.messages] == as_sent
    assert plain.report == typed.report


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
    signed = [_without_turn(message) for message in messages if "thinking_blocks" in message]
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


@given(wild_conversations(), context_settings(), st.integers(0, 40), MODELS)
def test_while_nothing_has_to_leave_on_and_off_send_the_same(
    messages: Messages, keys: Settings, more: int, model: str | None
) -> None:
    keys |= {"max_history_tokens": 0, "tool_result_masking": "steps", "input_limit": 0}
    assume(len(messages) <= 100)  # of more, the history window takes some
    refused = _refusal(messages, {**keys, "enabled": False, "max_context_tokens": 1}, model)
    assert refused is not None
    keys["max_context_tokens"] = refused.smallest_window + more
    off = build(messages, {**keys, "enabled": False}, model)
    on = build(messages, keys, model)
    assert off is not None
    assert on is not None
    assert on.messages == off.messages
    assert not on.report.trimmed


@given(wild_conversations(), context_settings(), st.integers(1, 60) | st.integers(1, 20_000), MODELS)
def test_with_no_plan_the_tokens_kept_never_fall_as_the_window_grows(
    messages: Messages, keys: Settings, more: int, model: str | None
) -> None:
    keys |= {"omitted_names": 0.0}  # there are fewer names to list where less leaves
    small = build(messages, keys, model)
    if small is None:
        return
    large = build(messages, {**keys, "max_context_tokens": keys["max_context_tokens"] + more}, model)
    assert large is not None
    target(small.report.bound / large.report.bound)
    # in tokens as the trim order counts them; a cut moves to a line end, so it may come out shorter
    assert large.report.bound >= small.report.bound - _lost_at_cuts(large)


@given(wild_conversations(), context_settings(), MODELS)
def test_a_levelling_fills_the_room(messages: Messages, keys: Settings, model: str | None) -> None:
    keys |= {"omitted_names": 0.0}
    prompt = build(messages, keys, model)
    if prompt is None or not _is_levelled(messages, prompt):
        return
    report = prompt.report
    room = report.window - report.reserve - report.margin
    assert report.bound >= 0.9 * room - _FRAMING


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


def _lost_at_cuts(prompt: FinalPrompt) -> float:
    """What cuts at line ends and inside JSON may cost: a share of what was cut."""
    cut = (row.tokens_after for row in prompt.report.rows if row.layer in {"levelled", "arguments"})
    return _FRAMING + 0.15 * sum(cut)


def _is_levelled(messages: Messages, prompt: FinalPrompt) -> bool:
    """Was a result of the newest iteration cut, and not down to the least, to make the prompt fit?

    An image is sent whole or not at all, so that there is nothing to be filled with one.
    """
    rows = prompt.report.rows
    newest = max((position for position, row in enumerate(rows) if row.role == "assistant"), default=0)
    if any(map(_images, messages[newest:])):
        return False
    return any(row.layer == "levelled" and row.tokens_after > 100 for row in rows[newest:])


def _without_turn(message: dict[str, Any]) -> dict[str, Any]:
    """What tells the pipeline of a message's turn stays behind."""
    return {key: value for key, value in message.items() if key != "turn"}


def _images(message: dict[str, Any]) -> int:
    content = message.get("content")
    return sum(part["type"] == "image_url" for part in content) if isinstance(content, list) else 0
