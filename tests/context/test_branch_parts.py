"""Of a long branch, only the parts for which a prompt can have room are read."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    CountMemo,
    Fate,
    FinalPrompt,
    Pins,
    branch_parts,
    build_final_prompt,
)
from rolling_chat.context.index_ranges import IndexRanges
from rolling_chat.messages import Message
from tests.support.conversations import MODELS, context_settings, wild_conversations
from tests.support.soundness import TOOLS, assert_sound, totals, with_ids

Messages = list[dict[str, Any]]
_MANY = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
_WORDS = "some words of a sentence, and a few more of the next one. "


@pytest.fixture
def skipping(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little there is to be skipped, it is."""
    monkeypatch.setattr(branch_parts, "MIN_SKIPPED", 0)


def said(count: int, words: str = _WORDS) -> list[Message]:
    """A system message, and so many turns of a request and an answer."""
    turns = (
        Message(role, f"{role} {number}: {words}", id=f"{role}{number}")
        for number in range(count)
        for role in ("user", "assistant")
    )
    return [Message("system", "Be careful."), *turns, Message("user", "And now?", id="now")]


def stored(plan: ContextPlan | None) -> ContextPlan | None:
    return ContextPlan.from_json(json.loads(json.dumps(plan.to_json()))) if plan is not None else None


def build(messages: list[Message], config: ContextConfig, plan: ContextPlan | None = None) -> FinalPrompt:
    return build_final_prompt(messages, config, tools=TOOLS, model="gpt-4o", plan=plan)


def counted(messages: list[Message], memo: CountMemo) -> int:
    return sum(bool(memo.counts_of(message)) for message in messages)


@_MANY
@given(wild_conversations(), context_settings(), MODELS, st.data())
def test_skipping_parts_of_a_branch_changes_nothing_in_the_prompt(
    messages: Messages, keys: dict[str, Any], model: str | None, data: st.DataObject
) -> None:
    config, branch, plan = ContextConfig(**keys), with_ids(messages), None
    assume(branch)
    pins = Pins(data.draw(st.frozensets(st.integers(0, len(branch)), max_size=2)))
    for end in sorted({*data.draw(st.sets(st.integers(1, len(branch)), max_size=3)), len(branch)}):
        prompts = list[FinalPrompt]()
        for least in (0, branch_parts.MIN_SKIPPED):
            with pytest.MonkeyPatch.context() as patching, suppress(ContextOverflowError):
                patching.setattr(branch_parts, "MIN_SKIPPED", least)
                prompts += (
                    build_final_prompt(branch[:end], config, tools=TOOLS, model=model, plan=known, pins=pins)
                    for known in (plan, stored(plan))
                )
        for prompt in prompts:
            assert len(prompts) == 4
            assert (prompt.messages, prompt.plan) == (prompts[0].messages, prompts[0].plan)
            assert totals(prompt.report) == totals(prompts[0].report)
            assert list(prompt.report.rows) == list(prompts[0].report.rows)
            plan = prompt.plan


@pytest.mark.usefixtures("skipping")
@settings(_MANY, max_examples=30)
@given(wild_conversations(), context_settings(st.integers(2_000, 20_000)), MODELS, st.data())
def test_a_branch_far_beyond_the_history_window_makes_a_sound_prompt(
    messages: Messages, keys: dict[str, Any], model: str | None, data: st.DataObject
) -> None:
    config = ContextConfig(**keys)
    assume(len(messages) > 2)
    branch = with_ids([*messages, *(messages[1:] * (300 // len(messages) + 1))])
    pins = Pins(*(data.draw(st.frozensets(st.integers(1, len(branch)), max_size=2)) for _ in range(2)))
    for known in (Pins(), pins):
        try:
            prompt = build_final_prompt(branch, config, tools=TOOLS, model=model, pins=known)
        except ContextOverflowError:
            continue
        if not known:
            assert_sound(branch, prompt, config, model)
        again = build_final_prompt(branch, config, tools=TOOLS, model=model, plan=stored(prompt.plan))
        assert (again.messages, again.plan) == (prompt.messages, prompt.plan)
        assert not again.report.trimmed


def test_only_the_newest_part_of_an_uncounted_long_branch_is_counted() -> None:
    branch, memo = said(5_000), CountMemo()
    config = ContextConfig(max_context_tokens=20_000)
    prompt = build_final_prompt(branch, config, tools=TOOLS, model="gpt-4o", memo=memo)
    assert counted(branch, memo) < 500
    assert prompt.messages[1].id == "user0"  # the task
    assert prompt.report.count(Fate.OMITTED) + prompt.report.count(Fate.SENT) == len(branch)
    assert [row.fate for row in prompt.report.rows].count(Fate.OMITTED) == prompt.report.count(Fate.OMITTED)


def test_a_branch_that_fits_is_sent_whole_as_long_as_the_history_window_holds_it() -> None:
    branch = said(450, "hm")
    prompt = build(branch, ContextConfig(max_context_tokens=200_000, max_history_tokens=0))
    assert prompt.report.count(Fate.SENT) == len(branch)


def test_a_stored_plan_does_not_read_omitted_messages() -> None:
    branch, config = said(3_000), ContextConfig(max_context_tokens=20_000)
    plan = build(branch, config).plan
    memo = CountMemo()
    later = [*branch, Message("assistant", "So it is.", id="so"), Message("user", "Why?", id="why")]
    prompt = build_final_prompt(later, config, tools=TOOLS, model="gpt-4o", plan=stored(plan), memo=memo)
    assert counted(later, memo) < 500
    assert prompt.messages == build(later, config, plan).messages


def test_with_rolling_off_only_the_newest_end_of_a_far_too_long_branch_is_counted() -> None:
    branch, memo = said(10_000), CountMemo()
    config = ContextConfig(max_context_tokens=5_000, enabled=False)
    with pytest.raises(ContextOverflowError) as refused:
        build_final_prompt(branch, config, tools=TOOLS, model="gpt-4o", memo=memo)
    report = refused.value.report
    assert counted(branch, memo) < 2_000
    assert report.count(Fate.SENT) == len(branch) == len(report.rows)
    assert not report.within_budget
    whole = sum(row.tokens_before for row in report.rows)
    assert 0.8 * whole < report.token_count < 1.2 * whole
    assert report.below > 0.2 * report.token_count  # it says that it is a guess


def test_with_rolling_off_the_next_request_reads_only_new_messages() -> None:
    branch, config = said(10_000), ContextConfig(max_context_tokens=5_000, enabled=False)
    with pytest.raises(ContextOverflowError) as refused:
        build(branch, config)
    memo, later = CountMemo(), [*branch, Message("assistant", "So it is.", id="so")]
    with pytest.raises(ContextOverflowError) as again:
        build_final_prompt(
            later, config, tools=TOOLS, model="gpt-4o", plan=refused.value.plan, memo=memo
        )  # fmt: skip
    assert counted(later, memo) < 10
    assert len(again.value.report.rows) == again.value.report.count(Fate.SENT) == len(later)


def test_turning_rolling_on_reads_messages_that_were_only_inferred() -> None:
    branch, config = said(10_000), ContextConfig(max_context_tokens=5_000, enabled=False)
    with pytest.raises(ContextOverflowError) as refused:
        build(branch, config)
    on = ContextConfig(max_context_tokens=5_000)
    assert build(branch, on, refused.value.plan).messages == build(branch, on).messages


@given(st.sets(st.integers(0, 40)), st.integers(0, 40), st.integers(0, 40), st.sets(st.integers(0, 40)))
def test_gaps_are_filled(omitted: set[int], first: int, stop: int, without: set[int]) -> None:
    ranges = IndexRanges().add((index, "2") for index in omitted)
    missing = [index for start, end in ranges.gaps(first, stop) for index in range(start, end)]
    assert missing == [index for index in range(first, stop) if index not in omitted]
    filled = ranges.with_gaps_filled(first, stop, "1", without)
    assert {index for index, layer in filled if layer == "1"} == set(missing) - without
    assert {index for index, layer in filled if layer == "2"} == omitted
