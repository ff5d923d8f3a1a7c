"""Calibration of system message and tools, separate from that of prose."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rolling_chat.context import (
    Calibration,
    ContextConfig,
    ContextPlan,
    FinalPrompt,
    Measurements,
    build_final_prompt,
    confirm_count,
)
from rolling_chat.context.calibration import Group
from tests.support.conversations import assistant, user

MODEL = "local/unknown"
SYSTEM = {"role": "system", "content": "You are a careful assistant."}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": f"tool_{number}",
            "description": "Reads what is asked for and says what it found there. " * 4,
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        },
    }
    for number in range(12)
]
QUESTION = user("What of this?")
ESSAY = user("The rain in Spain stays mainly in the plain. " * 200)


def build(
    messages: list[dict[str, Any]],
    learned: Measurements | None = None,
    plan: ContextPlan | None = None,
    tools: list[dict[str, Any]] | None = TOOLS,
    model: str = MODEL,
) -> FinalPrompt:
    calibration = learned.calibration if learned else Calibration()
    config = ContextConfig(max_context_tokens=200_000, max_history_tokens=0, calibration=calibration)
    return build_final_prompt(messages, config, tools=tools, model=model, plan=plan)


def learn(share: float, *, times: int = 1, model: str = MODEL) -> Measurements:
    """What first requests teach whose system message and tools count for a share of their estimate."""
    learned = Measurements()
    for _ in range(times):
        prompt = build([SYSTEM, QUESTION], model=model)
        fixed = prompt.report.system + prompt.report.tools
        reported = round(fixed * share) + prompt.report.current
        learned = learned.add(confirm_count(prompt.plan, reported).group)
    return learned


@pytest.mark.parametrize("share", [0.6, 1.4])
def test_a_new_conversation_begins_with_the_measured_size_of_system_and_tools(share: float) -> None:
    plain = build([SYSTEM, QUESTION]).report
    fixed = build([SYSTEM, QUESTION], learn(share)).report
    measured = share * (plain.system + plain.tools)
    assert abs(fixed.system + fixed.tools - measured) <= 0.02 * measured


def test_tools_sent_in_a_shorter_form_do_not_make_prose_cheaper() -> None:
    learned = learn(0.6)
    assert build([SYSTEM, ESSAY], learned).report.current == build([SYSTEM, ESSAY]).report.current
    assert learned.calibration.shape == 1.0


def test_a_preamble_does_not_make_prose_more_expensive() -> None:
    prompt = build([SYSTEM, QUESTION], tools=None)
    plan, group = confirm_count(prompt.plan, prompt.token_count + 1_380)
    again = build([SYSTEM, QUESTION, assistant("Yes."), ESSAY], Measurements().add(group), plan, tools=None)
    assert again.report.system >= 1_380
    plain = build([SYSTEM, QUESTION, assistant("Yes."), ESSAY], tools=None).report
    assert again.report.history + again.report.current <= 1.05 * (plain.history + plain.current)


def test_the_larger_part_of_a_first_request_takes_its_surplus() -> None:
    learned = Measurements().add(Group(10_100, 15_000, fixed=100))
    assert learned.wholes == ()
    assert 1.4 < learned.calibration.estimate < 1.6
    learned = Measurements().add(Group(5_100, 5_600, fixed=5_000))
    assert learned.groups == ()
    assert learned.calibration.estimate < 1.1


def test_with_an_unknown_tokenizer_the_ratio_of_tools_raises_the_bound_of_prose() -> None:
    learned = Measurements().add(Group(5_100, 18_500, fixed=5_000))
    assert learned.calibration.bound > 3.3
    assert learned.calibration.estimate > 3.0


def test_one_wrong_report_does_not_lower_the_bound_of_the_next_conversation() -> None:
    learned, sound = learn(0.4), Measurements()
    for _ in range(20):
        learned, sound = learned.add(Group(1_000, 1_000)), sound.add(Group(1_000, 1_000))
    assert learned.calibration.is_trusted
    plain = build([SYSTEM, QUESTION], sound).report
    assert build([SYSTEM, QUESTION], learned).report.bound >= plain.bound
    # three that agree are no slip
    for _ in range(2):
        learned = learned.add(learn(0.4).wholes[0])
    assert build([SYSTEM, QUESTION], learned).report.bound < plain.bound


def test_the_nearest_of_what_was_measured_counts() -> None:
    learned = learn(0.6)
    for _ in range(3):
        learned = learned.add(Group(30, 520, fixed=20))
    fixed = build([SYSTEM, QUESTION], learned).report
    plain = build([SYSTEM, QUESTION]).report
    assert abs(fixed.system + fixed.tools - 0.6 * (plain.system + plain.tools)) < 30


def test_an_estimator_that_was_chosen_is_not_corrected() -> None:
    config = ContextConfig(token_estimator="chars", calibration=learn(0.6).calibration)
    plain = ContextConfig(token_estimator="chars")
    counts = [
        build_final_prompt([SYSTEM, QUESTION], one, tools=TOOLS, model=MODEL).token_count
        for one in (config, plain)
    ]
    assert counts[0] == counts[1]


def test_first_requests_come_back_from_a_store_and_older_stores_are_read() -> None:
    learned = learn(0.6).add(Group(100, 130))
    assert Measurements.from_json(json.loads(json.dumps(learned.to_json()))) == learned
    older = {"groups": [[5_000, 4_500], [100, 130]], "replies": 2, "shape": 1.0}
    assert Measurements.from_json(older).groups == (Group(5_000, 4_500), Group(100, 130))
    for nonsense in ({"wholes": 3}, {"wholes": [[1, 2], [100, 90, 0], [100, 90, 200], [10, 10**6, 5], "x"]}):
        assert Measurements.from_json(nonsense) == Measurements()


class TestDoubtfulReports:
    def _grown(self) -> tuple[list[dict[str, Any]], ContextPlan]:
        messages = [SYSTEM, ESSAY, assistant("So it is. " * 900), QUESTION]
        prompt = build(messages)
        plan, _ = confirm_count(prompt.plan, prompt.token_count)
        return [*messages, assistant("Yes."), QUESTION], plan

    @pytest.mark.parametrize("times", [2.0, 3.1, 0.4])
    def test_a_sum_of_several_requests_is_left_out(self, times: float) -> None:
        messages, plan = self._grown()
        prompt = build(messages, plan=plan)
        doubted, group = confirm_count(prompt.plan, round(prompt.token_count * times))
        assert group is None
        assert build(messages, plan=doubted).token_count == prompt.token_count

    def test_what_is_reported_twice_is_believed(self) -> None:
        messages, plan = self._grown()
        prompt = build(messages, plan=plan)
        reported = prompt.token_count * 2
        plan, _ = confirm_count(prompt.plan, reported)
        plan, _ = confirm_count(build(messages, plan=plan).plan, reported)
        assert build(messages, plan=plan).token_count == reported

    def test_a_jump_that_hidden_reasoning_explains_is_believed_at_once(self) -> None:
        messages, plan = self._grown()
        prompt = build(messages, plan=plan)
        plan, _ = confirm_count(prompt.plan, prompt.token_count + 1_900)
        assert build(messages, plan=plan).token_count == prompt.token_count + 1_900

    def test_a_first_report_far_above_the_bound_of_a_known_model_is_left_out(self) -> None:
        prompt = build([SYSTEM, ESSAY, assistant("So it is. " * 2_000), QUESTION], model="gpt-4o")
        plan, group = confirm_count(prompt.plan, prompt.token_count * 2)
        assert group is None
        assert plan.confirmed is None
