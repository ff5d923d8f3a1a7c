"""Properties of a session: requests that grow, plans that are passed on, stored, lost and rewound."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
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
    Pins,
    build_final_prompt,
    tokens,
)
from rolling_chat.context.repair import MISSING_RESULT
from rolling_chat.messages import Message
from tests.support.conversations import (
    MODELS,
    assistant,
    context_settings,
    requests_of,
    tool,
    user,
    wild_conversations,
)
from tests.support.soundness import TOOLS, assert_sound, totals, with_ids

Messages = list[dict[str, Any]]


def build(
    messages: list[Message],
    config: ContextConfig,
    model: str | None,
    plan: ContextPlan | None = None,
    pins: Pins | None = None,
) -> FinalPrompt | None:
    """The prompt, or None where the pipeline refuses to make one."""
    try:
        return build_final_prompt(messages, config, tools=TOOLS, model=model, plan=plan, pins=pins)
    except ContextOverflowError:
        return None


def stored(plan: ContextPlan | None) -> ContextPlan | None:
    """The plan as it comes back from a store."""
    return ContextPlan.from_json(json.loads(json.dumps(plan.to_json()))) if plan is not None else None


def masks_exactly(config: ContextConfig) -> bool:
    masking = config.tool_result_masking
    return masking == "exact" or (masking == "auto" and not config.prompt_cache)


def is_kept(before: list[Message], after: list[Message]) -> bool:
    """Does what was sent stand at the front of what is sent now? What only closed it was never said."""
    said = next(
        (position for position, message in enumerate(before) if message.content == MISSING_RESULT),
        len(before),
    )
    return after[:said] == before[:said]


@given(wild_conversations(), context_settings(), MODELS, st.booleans())
def test_a_plan_from_a_store_is_as_good_as_one_in_memory_and_the_prefix_stands_still(
    messages: Messages, keys: dict[str, Any], model: str | None, prompt_cache: bool
) -> None:
    config = ContextConfig(**{**keys, "prompt_cache": prompt_cache})
    branch = with_ids(messages)
    plan, before = None, None
    for end in requests_of(messages):
        prompt = build(branch[:end], config, model, plan)
        other = build(branch[:end], config, model, stored(plan))
        assert (prompt is None) == (other is None)
        if prompt is None or other is None:
            continue
        assert_sound(branch[:end], prompt, config, model)
        assert (prompt.messages, prompt.plan) == (other.messages, other.plan)
        assert totals(prompt.report) == totals(other.report)
        if before is not None and not prompt.report.trimmed and not masks_exactly(config):
            assert is_kept(before, prompt.messages)
        plan, before = prompt.plan, prompt.messages


@given(wild_conversations(), context_settings(), MODELS, st.data())
def test_whatever_changes_between_two_requests_the_next_is_sound(
    messages: Messages, keys: dict[str, Any], model: str | None, data: st.DataObject
) -> None:
    branch, plan = with_ids(messages), None
    for end in requests_of(messages):
        change = data.draw(st.sampled_from(["", "", "window", "settings", "model", "store", "off", "cold"]))
        if change == "window":
            keys = {**keys, "max_context_tokens": data.draw(st.integers(200, 50_000))}
        elif change == "settings":
            keys = data.draw(context_settings(st.just(keys["max_context_tokens"])))
        elif change == "model":
            model = data.draw(MODELS)
        elif change == "store":
            plan = stored(plan)
        elif change == "cold" and plan is not None:
            plan = plan.cold()
        config = ContextConfig(**{**keys, "enabled": change != "off"})
        prompt = build(branch[:end], config, model, plan)
        if prompt is None:
            continue
        assert_sound(branch[:end], prompt, config, model)
        if change == "off":
            assert plan is None or prompt.plan.decisions == plan.decisions
            continue
        again = build(branch[:end], config, model, prompt.plan)
        assert again is not None
        assert (again.messages, again.plan) == (prompt.messages, prompt.plan)
        assert not again.report.trimmed
        plan = prompt.plan


@given(wild_conversations(), context_settings(), MODELS, st.data())
def test_what_the_person_pins_stays_and_what_they_exclude_is_not_sent(
    messages: Messages, keys: dict[str, Any], model: str | None, data: st.DataObject
) -> None:
    config, branch, plan, pins = ContextConfig(**keys), with_ids(messages), None, Pins()
    for end in requests_of(messages):
        if data.draw(st.booleans()):
            indexes = st.frozensets(st.integers(0, end - 1), max_size=3)
            pins = Pins(data.draw(indexes), data.draw(indexes))
        prompt = build(branch[:end], config, model, plan, pins)
        if prompt is None:
            continue
        assert_sound(branch[:end], prompt, config, model)
        for index, row in enumerate(prompt.report.rows):
            if index in pins.pinned - pins.excluded:
                assert row.fate not in {Fate.OMITTED, Fate.MASKED}
                assert row.fate is not Fate.SHORTENED or row.layer == "3a"
            if index in pins.excluded and row.fate is Fate.SENT and branch[index].role != "system":
                # the request that waits for its answer
                newest = branch[end - 1]
                assert newest.role != "assistant" or newest.tool_calls
                assert not any(map(_opens_turn, branch[index + 1 : end]))
        again = build(branch[:end], config, model, stored(prompt.plan))
        assert again is not None
        assert (again.messages, again.plan) == (prompt.messages, prompt.plan)
        plan = prompt.plan


def _opens_turn(message: Message) -> bool:
    return message.role in {"user", "system"} and (message.extras or {}).get("turn") != "same"


@given(wild_conversations(), context_settings(), MODELS, st.data())
def test_a_branch_cut_back_takes_the_plan_of_an_ancestor_and_no_other(
    messages: Messages, keys: dict[str, Any], model: str | None, data: st.DataObject
) -> None:
    config, branch = ContextConfig(**keys), with_ids(messages)
    plans: dict[int, ContextPlan] = {}
    plan = None
    for end in requests_of(messages):
        prompt = build(branch[:end], config, model, plan)
        if prompt is not None:
            plans[end] = plan = prompt.plan
    if not plans:
        return
    end = data.draw(st.sampled_from(requests_of(messages)))
    taken_at = data.draw(st.sampled_from(sorted(plans)))
    fresh = build(branch[:end], config, model)
    prompt = build(branch[:end], config, model, data.draw(st.sampled_from([stored, _same]))(plans[taken_at]))
    if prompt is None:
        return
    assert_sound(branch[:end], prompt, config, model)
    if taken_at > end:
        assert fresh is not None
        assert (prompt.messages, prompt.plan) == (fresh.messages, fresh.plan)
    edited = [*branch[: end - 1], Message("user", "something else", id="other")]
    other = build(edited, config, model, plans[taken_at])
    if other is not None:
        assert_sound(edited, other, config, model)


def _same(plan: ContextPlan | None) -> ContextPlan | None:
    return plan


@given(wild_conversations(), context_settings(), MODELS)
def test_rolling_switched_off_and_on_again_goes_on_where_it_was(
    messages: Messages, keys: dict[str, Any], model: str | None
) -> None:
    config, branch, plan = ContextConfig(**keys), with_ids(messages), None
    for end in requests_of(messages):
        laid_aside = build(branch[:end], replace(config, enabled=False), model, plan)
        through = build(branch[:end], config, model, laid_aside.plan if laid_aside and plan else plan)
        straight = build(branch[:end], config, model, plan)
        assert (through is None) == (straight is None)
        if through is None or straight is None:
            continue
        assert (through.messages, through.plan) == (straight.messages, straight.plan)
        plan = straight.plan


@given(wild_conversations(), context_settings(), MODELS, st.data())
def test_with_rolling_off_what_was_seen_before_changes_nothing(
    messages: Messages, keys: dict[str, Any], model: str | None, data: st.DataObject
) -> None:
    branch, plan, pins = with_ids(messages), None, Pins()
    for _request in range(6):
        end = data.draw(st.integers(0, len(branch)))
        change = data.draw(st.sampled_from(["", "", "", "on", "model", "settings", "pins", "edit"]))
        match change:
            case "model":
                model = data.draw(MODELS)
            case "settings":
                keys = data.draw(context_settings())
            case "pins":
                indexes = st.frozensets(st.integers(0, len(branch)), max_size=3)
                pins = Pins(data.draw(indexes), data.draw(indexes))
            case "edit" if end:
                branch[end - 1] = Message("user", f"edited {end}", id=f"edited {end}")
        config = ContextConfig(**{**keys, "enabled": change == "on"})
        warm, cold = (_seen(branch[:end], config, model, one, pins) for one in (plan, stored(plan)))
        assert warm[:2] == cold[:2]
        plan = warm[2]


def _seen(
    branch: list[Message], config: ContextConfig, model: str | None, plan: ContextPlan | None, pins: Pins
) -> tuple[object, object, ContextPlan | None]:
    """What is sent, what is told of it, and the plan for the next request, also of one that is refused."""
    try:
        prompt = build_final_prompt(branch, config, tools=TOOLS, model=model, plan=plan, pins=pins)
    except ContextOverflowError as error:
        return str(error), totals(error.report), error.plan
    return prompt.messages, totals(prompt.report), prompt.plan


@given(wild_conversations(), context_settings(), MODELS)
def test_a_warm_plan_counts_only_what_is_new(
    messages: Messages, keys: dict[str, Any], model: str | None
) -> None:
    config, plan, seen = ContextConfig(**keys), None, 0
    for end in requests_of(messages):
        with pytest.MonkeyPatch.context() as patch:
            counted = _Counted(patch)
            prompt = _build_of_dictionaries(messages[:end], config, model, plan)
        if prompt is None:
            plan, seen = None, 0
            continue
        if plan is not None and not prompt.report.trimmed:
            new = sum(len(json.dumps(message)) for message in messages[seen:end])
            system = sum(len(json.dumps(message)) for message in prompt.messages[:1])
            assert counted.characters <= 40 * (new + system + len(json.dumps(TOOLS)) + 500)
        plan, seen = prompt.plan, end


def test_what_a_request_costs_does_not_grow_with_the_session() -> None:
    config, plan = ContextConfig(max_context_tokens=16_000, prompt_cache=True), None
    messages: Messages = [{"role": "system", "content": "You are careful."}]
    costs = []
    for number in range(400):
        messages += [user(f"q{number} " + "word " * 40), assistant("", (f"c{number}", "run_command"))]
        messages.append(tool(f"c{number}", f"{number} " + "a line of output\n" * 40))
        with pytest.MonkeyPatch.context() as patch:
            counted = _Counted(patch)
            prompt = build_final_prompt(messages, config, tools=TOOLS, model="gpt-4o", plan=plan)
        costs.append(counted.characters)
        plan = prompt.plan
        messages.append(assistant("done"))
    assert sum(costs[300:]) <= 1.25 * sum(costs[100:200])


def _build_of_dictionaries(
    messages: Messages, config: ContextConfig, model: str | None, plan: ContextPlan | None
) -> FinalPrompt | None:
    try:
        return build_final_prompt(messages, config, tools=TOOLS, model=model, plan=plan)
    except ContextOverflowError:
        return None


class _Counted:
    """Adds up the characters that the estimators count, of messages and of texts that are being cut."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.characters = 0
        count_message = tokens.FamilyEstimator.raw_message

        def raw_message(estimator: tokens.FamilyEstimator, message: Message) -> int:
            if estimator.memo is None or estimator.memo.find(message, estimator.name) is None:
                self.characters += len(message.text) + sum(len(call.arguments) for call in message.tool_calls)
            return count_message(estimator, message)

        patch.setattr(tokens.FamilyEstimator, "raw_message", raw_message)
        for name in ("count_text", "bound_text"):
            patch.setattr(tokens.FamilyEstimator, name, self._counting(getattr(tokens.FamilyEstimator, name)))

    def _counting(
        self, count: Callable[[tokens.FamilyEstimator, str], int]
    ) -> Callable[[tokens.FamilyEstimator, str], int]:
        def counting(estimator: tokens.FamilyEstimator, text: str) -> int:
            self.characters += len(text)
            return count(estimator, text)

        return counting
