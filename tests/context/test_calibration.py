"""Calibration by replies: measured sizes, ratios for additions, and an unchanged prefix."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from rolling_chat.context import (
    Calibration,
    ContextConfig,
    ContextPlan,
    CountMemo,
    Fate,
    FinalPrompt,
    Measurements,
    build_final_prompt,
    confirm_count,
    prompt_bound,
)
from rolling_chat.context.calibration import Group
from rolling_chat.context.prompt import rebuild_final_prompt
from rolling_chat.messages import Message
from tests.benchmarks.never_over import converse
from tests.support.conversations import assistant, user
from tests.support.mixed_text import mixed_text
from tests.support.tokenizers import Tokenizer, six_tokenizers

MODEL = "local/unknown"
SYSTEM = {"role": "system", "content": "You are a careful assistant."}


def build(messages: list[dict[str, Any]], plan: ContextPlan | None = None, **keys: Any) -> FinalPrompt:
    config = ContextConfig(**{"max_context_tokens": 4_096, "reserved_output_tokens": 100, **keys})
    return build_final_prompt(messages, config, model=MODEL, plan=plan)


def byte_count(messages: list[dict[str, Any]]) -> int:
    return sum(len(json.dumps(message)) for message in messages)


class TestMeasurements:
    def test_the_middle_ratio_corrects_the_estimate_and_the_largest_the_bound(self) -> None:
        learned = Measurements()
        for reported in (110, 120, 130, 120, 120, 115, 125, 160):
            learned = learned.add(Group(100, reported))
        assert learned.calibration.estimate == 1.2
        assert 1.6 <= learned.calibration.bound <= 1.7
        assert learned.calibration.is_trusted

    def test_the_familys_prior_holds_until_eight_groups_are_known(self) -> None:
        learned = Measurements()
        for count in range(1, 9):
            learned = learned.add(Group(1_000, 1_000))
            assert (learned.calibration.prior(1.35, 1.8) < 1.8) == (count >= 8)

    def test_a_ratio_above_the_prior_applies_at_once(self) -> None:
        assert Measurements().add(Group(100, 370)).calibration.prior(1.0, 1.0) >= 3.7

    @pytest.mark.parametrize("reported", [0, -50, 29, 601])
    def test_implausible_counts_are_ignored(self, reported: int) -> None:
        assert Measurements().add(Group(100, reported)).groups == ()

    def test_the_last_sixty_four_are_kept(self) -> None:
        learned = Measurements().add(Group(100, 500))
        for _ in range(64):
            learned = learned.add(Group(100, 110))
        assert len(learned.groups) == 64
        assert learned.calibration.bound < 1.2
        assert learned.replies == 65

    def test_caps_change_in_steps_that_small_changes_do_not_trigger(self) -> None:
        learned = Measurements().add(Group(100, 300))
        assert learned.calibration.shape == 3.0
        for reported in (280, 320, 350, 250, 400):
            learned = learned.add(Group(100, reported))
            assert learned.calibration.shape == 3.0

    def test_measurements_are_read_from_json_and_invalid_ones_are_ignored(self) -> None:
        learned = Measurements().add(Group(100, 300)).add(Group(50, 60)).add(None)
        assert Measurements.from_json(json.loads(json.dumps(learned.to_json()))) == learned
        for nonsense in (None, 7, [], {}, {"groups": 3}, {"groups": [[1], "x", [0, 5], [1, 10**9]]}):
            assert Measurements.from_json(nonsense) == Measurements()


class TestConfirming:
    def test_after_a_reply_the_prompt_is_as_large_as_was_reported(self) -> None:
        messages = [SYSTEM, user("What of this? " * 20), assistant("It is so. " * 20), user("And now?")]
        prompt = build(messages)
        plan, group = confirm_count(prompt.plan, 777)
        again = build(messages, plan)
        assert again.token_count == again.report.bound == 777
        assert again.report.exact
        assert again.report.band == 0
        fixed = prompt.report.system + prompt.report.tools
        assert group == Group(prompt.token_count, 777, fixed)

    def test_what_is_added_is_estimated_and_its_count_is_the_difference(self) -> None:
        messages = [SYSTEM, user("What of this? " * 20)]
        plan, _ = confirm_count(build(messages).plan, 300)
        messages += [assistant("It is so. " * 30), user("And now? " * 10)]
        grown = build(messages, plan)
        assert grown.report.bound > 300
        plan, group = confirm_count(grown.plan, 500)
        assert group is not None
        assert group.reported == 200
        assert build(messages, plan).token_count == 500

    def test_after_a_trim_what_is_left_is_what_was_measured_of_it(self) -> None:
        messages: list[dict[str, Any]] = [SYSTEM]
        plan: ContextPlan | None = None
        rng, seen = random.Random(1), 0
        for _ in range(60):
            messages += [user(mixed_text(rng, 300)), assistant(mixed_text(rng, 300)), user("And?")]
            prompt = build(messages, plan, max_history_tokens=0)
            plan, group = confirm_count(prompt.plan, byte_count(prompt.messages) // 3)
            if prompt.report.trimmed:
                seen += 1
                assert group is None  # its difference to the request before says nothing
            messages.append(assistant("So it is."))
        assert seen

    @pytest.mark.parametrize("reported", [0, -1, 5, 10**7])
    def test_a_count_of_something_else_changes_nothing(self, reported: int) -> None:
        prompt = build([SYSTEM, user("What of this? " * 20)])
        assert confirm_count(prompt.plan, reported) == (prompt.plan, None)

    def test_what_was_measured_is_in_the_plan_and_nowhere_else(self) -> None:
        texts = [said for n in range(40) for said in (user(f"q{n} " * 30), assistant(f"a{n} " * 30))]
        messages, equal = (list(map(Message.from_dict, [SYSTEM, *texts, user("Now?")])) for _ in range(2))
        config, memo = ContextConfig(max_context_tokens=2_000, reserved_output_tokens=100), CountMemo()
        prompt = build_final_prompt(messages[:31], config, model=MODEL, memo=memo)
        counts = list(map(memo.counts_of, messages))
        confirm_count(prompt.plan, prompt.token_count // 2, memo=memo)
        assert list(map(memo.counts_of, messages)) == counts
        prompts = [build_final_prompt(given, config, model=MODEL, memo=memo) for given in (messages, equal)]
        assert prompts[0].messages == prompts[1].messages
        assert prompts[0].report == prompts[1].report

    def test_a_message_of_another_length_is_not_the_one_that_was_measured(self) -> None:
        messages = [SYSTEM, user("What of this? " * 20), assistant("So it is."), user("And now?")]
        plan, _ = confirm_count(build(messages).plan, 250)
        rows = build(messages, replace(plan, index=None)).report.rows
        others = [SYSTEM, user("What else? " * 90), *messages[2:]]
        changed, unknown = build(others, plan).report.rows, build(others).report.rows
        assert changed[1].tokens_after == unknown[1].tokens_after
        assert changed[3].tokens_after == rows[3].tokens_after != unknown[3].tokens_after

    def test_with_rolling_off_messages_remember_what_was_measured(self) -> None:
        messages = [Message.from_dict(one) for one in (SYSTEM, user("What of this? " * 20))]
        config = ContextConfig(enabled=False, max_context_tokens=4_096)
        prompt = build_final_prompt(messages, config, model=MODEL)
        plan, _ = confirm_count(prompt.plan, 300)
        messages += [Message("assistant", "It is so."), Message("user", "And now?")]
        grown = build_final_prompt(messages, config, model=MODEL, plan=plan)
        assert 300 < grown.token_count < 330
        stored = ContextPlan.from_json(json.loads(json.dumps(plan.to_json())))
        assert build_final_prompt(messages, config, model=MODEL, plan=stored).token_count == grown.token_count
        # another model has measured nothing
        assert not build_final_prompt(messages, config, model="gpt-4o", plan=plan).report.exact


def test_the_window_stays_the_models_own_whatever_the_ratio() -> None:
    calibration = Measurements().add(Group(1_000, 3_700)).calibration
    report = build([SYSTEM, user("hello")], calibration=calibration).report
    assert report.window == 4_096
    assert report.bound > build([SYSTEM, user("hello")]).report.bound


def test_a_byte_tokenizers_bound_is_never_above_bytes_and_framing() -> None:
    calibration = Calibration(estimate=5.0, bound=6.0, shape=5.0, replies=9, is_trusted=True)
    text = '{"a":1}' * 400
    bound = prompt_bound([user(text)], model=MODEL, calibration=calibration)
    assert bound < len(text) + 100


def test_a_changed_calibration_does_not_change_the_prefix() -> None:
    rng, messages, learned = random.Random(2), [SYSTEM], Measurements()
    plan: ContextPlan | None = None
    sent: list[dict[str, Any]] = []
    for number in range(40):
        messages += [user(mixed_text(rng, 200)), assistant("ok"), user("And?")]
        prompt = build(messages, plan, calibration=learned.calibration, max_context_tokens=100_000)
        assert prompt.messages[: len(sent)] == sent
        sent = prompt.messages
        plan, group = confirm_count(prompt.plan, int(byte_count(sent) / 4 * (1 + 0.01 * (number % 7))))
        learned = learned.add(group)
        messages.append(assistant("Yes."))


def test_a_request_is_rebuilt_identically_after_later_calibration() -> None:
    rng, learned = random.Random(3), Measurements()
    messages = [Message.from_dict(SYSTEM)]
    plan: ContextPlan | None = None
    kept = []
    for _ in range(40):
        messages.append(Message("user", mixed_text(rng, 300)))
        config = ContextConfig(
            max_context_tokens=3_000, reserved_output_tokens=100, calibration=learned.calibration
        )
        prompt = build_final_prompt(messages, config, model=MODEL, plan=plan)
        kept.append((len(messages), config, prompt.plan.to_json(), prompt.messages))
        plan, group = confirm_count(prompt.plan, byte_count([one.to_dict() for one in prompt.messages]))
        learned = learned.add(group)
        messages.append(Message("assistant", mixed_text(rng, 200)))
    assert prompt.report.count(Fate.OMITTED)
    for length, config, stored, sent in kept:
        shaped = replace(config, calibration=Calibration(shape=config.calibration.shape))
        again = rebuild_final_prompt(
            messages[:length], shaped, model=MODEL, plan=ContextPlan.from_json(json.loads(json.dumps(stored)))
        )
        assert again.messages == sent


@pytest.mark.parametrize("tokenizer", six_tokenizers(), ids=lambda tokenizer: tokenizer.model)
def test_a_model_that_nobody_knows_refuses_once_at_most_and_its_window_is_used(tokenizer: Tokenizer) -> None:
    told = converse(tokenizer, 4_096, 60, seed=11)
    assert told.refused <= 1
    assert len(told.filled) > 2
    assert sum(told.filled) / len(told.filled) >= 0.9
