"""The band around an estimate contains the true count and is no wider than the uncertainty."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from rolling_chat.context import (
    ContextConfig,
    ContextPlan,
    FinalPrompt,
    Measurements,
    build_final_prompt,
    confirm_count,
)
from rolling_chat.context.measured_sizes import characters_of
from rolling_chat.messages import Message
from tests.support.conversations import assistant, user
from tests.support.mixed_text import mixed_text
from tests.support.tokenizers import Tokenizer, six_tokenizers

MODEL = "anthropic/claude-sonnet-4-5"
SYSTEM = {"role": "system", "content": "You are a careful assistant."}


def build(messages: Sequence[dict[str, Any]], plan: ContextPlan | None = None, **keys: Any) -> FinalPrompt:
    return build_final_prompt(
        messages, ContextConfig(max_context_tokens=40_000, **keys), model=MODEL, plan=plan
    )


def is_inside(prompt: FinalPrompt, counted: int) -> bool:
    report = prompt.report
    return report.token_count - report.below <= counted <= report.token_count + report.above


def test_with_rolling_off_the_refusal_stands_where_the_room_ends() -> None:
    messages = [SYSTEM, user("What of this? " * 20)]
    for plan in (None, confirm_count(build(messages).plan, 150).plan):
        report = build([*messages, assistant("So."), user("And?")], plan, enabled=False).report
        assert report.trim_at == report.window - report.reserve - report.margin
    assert build(messages).report.trim_at < report.trim_at  # history may take a tenth while it is on


def test_a_counted_prompt_has_no_band() -> None:
    messages = [SYSTEM, user("What of this? " * 20)]
    plan, _ = confirm_count(build(messages).plan, 150)
    report = build(messages, plan).report
    assert (report.below, report.above, report.band) == (0, 0, 0)


def test_only_what_was_added_since_is_uncertain() -> None:
    messages = [SYSTEM, user("What of this? " * 900)]
    first = build(messages)
    plan, _ = confirm_count(first.plan, first.token_count)
    report = build([*messages, assistant("It is so. " * 30), user("And now? " * 10)], plan).report
    assert 0 < report.below < report.token_count - first.token_count
    assert 0 < report.band < 0.1 < first.report.band


def test_a_reply_whose_size_was_reported_is_less_uncertain() -> None:
    messages = [SYSTEM, user("What of this? " * 20)]
    plan, _ = confirm_count(build(messages).plan, 120)
    reply = Message("assistant", "It is so. " * 300)
    grown = [*messages, reply.to_dict()]
    size = build(grown, plan).token_count - 120
    known = replace(plan, measured=plan.measured.add_replies({(2, characters_of(reply)): size}))
    before, after = build(grown, plan).report, build(grown, known).report
    assert after.token_count == before.token_count
    assert after.above < before.above / 2
    assert after.below <= before.below


def test_after_a_trim_the_rest_is_slightly_uncertain() -> None:
    messages: list[dict[str, Any]] = [SYSTEM]
    plan: ContextPlan | None = None
    for number in range(20):
        messages += [user(f"{number}: what of this? " * 60), assistant("It is so. " * 60), user("And?")]
        prompt = build(messages, plan, max_history_tokens=4_000)
        if prompt.report.trimmed and number > 3:
            assert 0 < prompt.report.below < 0.3 * prompt.token_count
            return
        plan, _ = confirm_count(prompt.plan, prompt.token_count)
        messages.append(assistant("So it is."))
    pytest.fail("nothing was trimmed")


@pytest.mark.parametrize("has_usage", [(True,), (True, True, False), (True, True, False, False)])
def test_it_holds_the_counts_of_six_tokenizers(has_usage: Sequence[bool]) -> None:
    """With every usage, and with one or two in a row that could not be read."""
    inside = [found for tokenizer in six_tokenizers() for found in _converse(tokenizer, has_usage)]
    assert inside.count(False) <= 0.01 * len(inside)


def _converse(tokenizer: Tokenizer, has_usage: Sequence[bool]) -> Iterator[bool]:
    messages: list[dict[str, Any]] = [SYSTEM]
    plan: ContextPlan | None = None
    learned, rng = Measurements(), random.Random(7)
    for number in range(40):
        messages.append(user(mixed_text(rng, 200)))
        config = ContextConfig(max_context_tokens=400_000, calibration=learned.calibration)
        prompt = build_final_prompt(messages, config, model=tokenizer.model, plan=plan)
        counted = tokenizer.report(prompt.messages)
        if number > 2:
            yield is_inside(prompt, counted)
        plan = prompt.plan
        if has_usage[number % len(has_usage)]:
            plan, group = confirm_count(plan, counted)
            learned = learned.add(group)
        messages.append(assistant(mixed_text(rng, 300)))
