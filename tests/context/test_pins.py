"""Pinned messages stay, excluded ones are not sent, and the prompt is well-formed in any case."""

from __future__ import annotations

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
)
from rolling_chat.context.pins import EXCLUDED_RESULT, resolve_pins
from rolling_chat.context.repair import REPLY_OMITTED
from tests.support.conversations import MODELS, assistant, context_settings, tool, user, wild_conversations
from tests.support.prompt_rules import broken_rules
from tests.support.soundness import TOOLS, assert_every_message_has_one_fate, assert_sound, with_ids

SYSTEM = {"role": "system", "content": "You are a careful assistant."}
PAGE = "a line of output that says very little\n" * 55
SMALL = ContextConfig(max_context_tokens=2_000, reserved_output_tokens=100, trim_to=1.0)
# 0 system, 1 request, 2 call, 3 and 4 its results, 5 answer, 6 and 7 another turn, 8 the current request
BRANCH = [
    SYSTEM,
    user("look"),
    assistant("", ("a", "read_file"), ("b", "read_file")),
    tool("a", "first"),
    tool("b", "second"),
    assistant("seen"),
    user("next"),
    assistant("done"),
    user("now"),
]


def build(messages: list[dict[str, Any]], config: ContextConfig, **more: Any) -> FinalPrompt:
    prompt = build_final_prompt(messages, config, model="gpt-4o", **more)
    assert broken_rules(prompt.messages) == []
    return prompt


def pinned(*indexes: int) -> Pins:
    return Pins(frozenset(indexes))


def excluded(*indexes: int) -> Pins:
    return Pins(frozenset(), frozenset(indexes))


def test_pinning_a_result_pins_its_iteration_and_its_request() -> None:
    assert resolve_pins(BRANCH, pinned(3)).pinned == {1, 2, 3, 4}


def test_pinning_an_answer_pins_its_request() -> None:
    assert resolve_pins(BRANCH, pinned(5)).pinned == {1, 5}


def test_an_excluded_result_says_so_and_its_call_stays() -> None:
    prompt = build(BRANCH, ContextConfig(), pins=excluded(3))
    assert [message["content"] for message in prompt.messages[3:5]] == [EXCLUDED_RESULT, "second"]
    assert prompt.report.rows[3].fate is Fate.EXCLUDED
    assert prompt.report.count(Fate.EXCLUDED) == 1


def test_excluding_a_call_excludes_its_iteration() -> None:
    prompt = build(BRANCH, ContextConfig(), pins=excluded(2))
    assert [message["content"] for message in prompt.messages[1:]] == ["look", "seen", "next", "done", "now"]
    assert [row.fate for row in prompt.report.rows[2:5]] == [Fate.EXCLUDED] * 3


def test_excluding_a_request_excludes_its_turn_but_never_the_current_one() -> None:
    prompt = build(BRANCH, ContextConfig(), pins=excluded(1, 8))
    assert [message["content"] for message in prompt.messages[1:]] == ["next", "done", "now"]


@pytest.mark.parametrize("answer", ["done", "", "\n\n"])
def test_the_newest_turn_may_be_excluded_once_it_is_answered_even_with_an_empty_answer(answer: str) -> None:
    config, pins = ContextConfig(max_context_tokens=4_000), excluded(3)
    branch = with_ids([SYSTEM, user("look"), assistant("seen"), user("next"), assistant(answer), user("now")])
    fates = []
    for end in (4, 5, 6):
        prompt = build_final_prompt(branch[:end], config, tools=TOOLS, model="gpt-4o", pins=pins)
        assert_sound(branch[:end], prompt, config, "gpt-4o")
        fates.append([row.fate for row in prompt.report.rows[3:]])
    sent, left = Fate.SENT, Fate.EXCLUDED
    assert fates == [[sent], [left, left], [left, left, sent]]


def test_the_first_message_is_a_request_even_if_marked_as_sent_into_a_turn() -> None:
    torn = [{**user("look"), "turn": "same"}, assistant("seen")]
    for branch in ([SYSTEM, *torn], torn, [SYSTEM, tool("lost", "x"), *torn]):
        request = len(branch) - 2
        assert resolve_pins(branch, pinned(request + 1)).pinned == {request, request + 1}
        assert resolve_pins([*branch, user("now")], excluded(request)).excluded == {request, request + 1}
    late = [SYSTEM, *torn, torn[0], assistant("again")]
    assert resolve_pins(late, pinned(4)).pinned == {1, 4}


def test_excluding_an_answer_leaves_a_reply_in_its_place() -> None:
    prompt = build(BRANCH, ContextConfig(), pins=excluded(7))
    assert [message["content"] for message in prompt.messages[-3:]] == ["next", REPLY_OMITTED, "now"]


def test_what_is_excluded_is_not_pinned() -> None:
    assert resolve_pins(BRANCH, Pins(frozenset({3}), frozenset({2}))).pinned == {1}


def test_an_excluded_result_stays_beside_a_pinned_call() -> None:
    branch = [*BRANCH[:6], *[user(PAGE), assistant("yes")] * 12, user("now")]
    prompt = build(branch, SMALL, pins=Pins(frozenset({2}), frozenset({3})))
    assert EXCLUDED_RESULT in [message["content"] for message in prompt.messages]


def test_a_pinned_result_stays_whole_when_everything_around_it_is_omitted() -> None:
    branch = [SYSTEM, user("look"), assistant("", ("a", "read_file")), tool("a", f"pinned\n{PAGE}")]
    for number in range(12):
        branch += [assistant(f"answer {number}"), user(f"request {number}\n{PAGE}")]
    prompt = build(branch, SMALL, pins=pinned(3))
    assert [message["content"] for message in prompt.messages[1:4]] == ["look", None, f"pinned\n{PAGE}"]


def test_pins_are_in_the_floor() -> None:
    branch = [SYSTEM, user("look"), assistant(PAGE), user("now")]
    before, after = (build(branch, ContextConfig(), pins=pins).report.floor for pins in (None, pinned(2)))
    assert after - before > 400


def test_pins_that_cannot_fit_are_named_in_the_refusal() -> None:
    branch = [SYSTEM, user("look"), assistant(PAGE * 8), user("now")]
    with pytest.raises(ContextOverflowError) as refusal:
        build(branch, SMALL, pins=pinned(2))
    assert refusal.value.largest[0][0] == "pinned messages"


def test_a_message_pinned_after_its_omission_is_restored() -> None:
    branch = [SYSTEM, user("look"), assistant("an answer"), *[user(PAGE), assistant("yes")] * 12, user("now")]
    config = ContextConfig(max_context_tokens=2_000, reserved_output_tokens=100, trim_strategy="oldest-first")
    gone = build(branch, config)
    assert "an answer" not in [message["content"] for message in gone.messages]
    back = build(branch, config, pins=pinned(2), plan=gone.plan)
    assert [message["content"] for message in back.messages[1:3]] == ["look", "an answer"]
    unpinned = build(branch, config, pins=Pins(), plan=back.plan)
    assert broken_rules(unpinned.messages) == []


def test_a_message_no_longer_excluded_shares_the_fate_of_its_turn() -> None:
    turn = [user("look"), assistant("", ("a", "read_file")), tool("a", "x"), assistant("seen")]
    branch = [SYSTEM, *turn, *[user(PAGE), assistant("yes")] * 12, user("now")]
    config = ContextConfig(max_context_tokens=2_000, reserved_output_tokens=100, trim_strategy="oldest-first")
    gone = build(branch, config, pins=excluded(2))
    back = build(branch, config, pins=Pins(), plan=gone.plan)
    assert back.report.rows[2].fate is Fate.OMITTED


def test_a_plan_remembers_its_pins() -> None:
    plan = build(BRANCH, ContextConfig(), pins=Pins(frozenset({5}), frozenset({3}))).plan
    read = ContextPlan.from_json(plan.to_json())
    assert read is not None
    assert build(BRANCH, ContextConfig(), plan=read).report.rows[3].fate is Fate.EXCLUDED


def torn_turn() -> list[dict[str, Any]]:
    """Two calls under the same ids, and a result of each that was never recorded."""
    calls = [assistant("", ("a", "x"), ("b", "x")), tool("a", PAGE)]
    return [SYSTEM, user("look"), *calls, *calls, user("and?"), assistant("yes"), user("now")]


def test_a_request_excluded_while_running_is_excluded_once_it_is_history() -> None:
    pins, config = excluded(1), ContextConfig()
    plan = build([SYSTEM, user("a")], config, pins=pins).plan
    later = build([SYSTEM, user("a"), assistant("b"), user("c")], config, pins=pins, plan=plan)
    assert [message["content"] for message in later.messages[1:]] == ["c"]
    assert later.report.count(Fate.SENT, Fate.EXCLUDED) == 4


def test_a_pinned_call_whose_result_is_excluded_keeps_the_line_that_says_so() -> None:
    branch = [
        SYSTEM,
        user("a"),
        assistant("", ("1", "x")),
        tool("1", PAGE),
        *[user(PAGE), assistant("y")] * 9,
    ]
    config = ContextConfig(max_context_tokens=2_000, reserved_output_tokens=100)
    prompt = build([*branch, user("now")], config, pins=Pins(frozenset({2}), frozenset({3})))
    assert broken_rules(prompt.messages) == []
    assert [row.fate for row in prompt.report.rows[2:4]] == [Fate.SENT, Fate.EXCLUDED]


def through(steps: list[tuple[int, Pins]], branch: list[dict[str, Any]]) -> list[FinalPrompt]:
    """The prompts of a session that is short of room, each well-formed and with a report that adds up."""
    config = ContextConfig(max_context_tokens=120, reserved_output_tokens=0, safety_margin=0.0)
    messages, plan, prompts = with_ids(branch), None, []
    for end, pins in steps:
        prompt = build_final_prompt(messages[:end], config, model="gpt-4o", plan=plan, pins=pins)
        assert broken_rules([message.to_dict() for message in prompt.messages]) == []
        assert_every_message_has_one_fate(messages[:end], prompt)
        prompts.append(prompt)
        plan = prompt.plan
    return prompts


LONG = "a request that is long enough " * 10


def test_a_message_invented_for_an_omitted_turn_is_dropped_when_the_next_turn_is_excluded() -> None:
    unanswered = [user(LONG), assistant("", ("a", "x"))]
    for left in unanswered:
        branch = [SYSTEM, left, user(LONG), assistant("yes"), user("now")]
        out = excluded(2)
        *_, last = through([(3, Pins()), (4, out), (5, out)], branch)
        assert [message.text for message in last.messages[1:]] == ["now"]


def test_a_stray_result_that_comes_back_with_its_turn_is_counted_once() -> None:
    turn = [user("look"), assistant("", ("a", "x")), tool("a", "x"), tool("a", "stray")]
    branch = [SYSTEM, *turn, user(LONG), assistant("", ("a", "x")), user("now")]
    *_, last = through([(7, excluded(2)), (8, Pins())], branch)
    assert last.report.count(Fate.OMITTED) == 6


def test_a_result_of_an_omitted_call_is_not_sent() -> None:
    branch = [
        assistant("", ("a", "x")),
        {**user("more"), "turn": "same"},
        tool("a", "late"),
        user(LONG),
        user("now"),
    ]
    *_, last = through([(4, Pins()), (5, excluded(1))], branch)
    assert [row.fate for row in last.report.rows[:3]] == [Fate.OMITTED, Fate.EXCLUDED, Fate.REPAIRED]


@pytest.mark.parametrize("pinned", [1, 2, 3, 4, 5])
def test_a_message_invented_for_a_pinned_one_is_kept_with_it(pinned: int) -> None:
    branch = torn_turn()
    config = ContextConfig(max_context_tokens=1_100, reserved_output_tokens=0, preserve_recent_turns=0)
    pins = Pins(frozenset({pinned}))
    prompt = build(branch, config, pins=pins)
    assert broken_rules(prompt.messages) == []
    stored = ContextPlan.from_json(prompt.plan.to_json())
    assert build(branch, config, pins=pins, plan=stored).messages == prompt.messages


@st.composite
def _pins(draw: st.DrawFn, indexes: int) -> Pins:
    sets = st.frozensets(st.integers(-1, indexes), max_size=5)
    return Pins(draw(sets), draw(sets))


@given(wild_conversations(), context_settings(), MODELS, st.booleans(), st.data())
def test_whatever_is_pinned_and_excluded_the_prompt_is_well_formed_and_as_was_asked(
    messages: list[dict[str, Any]],
    keys: dict[str, Any],
    model: str | None,
    enabled: bool,
    data: st.DataObject,
) -> None:
    plan: ContextPlan | None = None
    config = ContextConfig(**{**keys, "enabled": enabled})
    for end in sorted(data.draw(st.lists(st.integers(0, len(messages)), max_size=3))):
        branch, pins = messages[:end], data.draw(_pins(end))
        try:
            prompt = build_final_prompt(branch, config, model=model, plan=plan, pins=pins)
        except ContextOverflowError:
            continue
        assert broken_rules(prompt.messages) == []
        held, rows = resolve_pins(branch, pins), prompt.report.rows
        assert all(rows[index].fate is Fate.EXCLUDED for index in held.excluded)
        assert all(rows[index].layer in {"", "repair", "3a"} for index in held.pinned)
        assert all(rows[index].tokens_after > 0 or rows[index].layer == "repair" for index in held.pinned)
        assert len(rows) == end
        assert sum(prompt.report.fates.values()) == end
        cold = ContextPlan.from_json(prompt.plan.to_json())
        again = build_final_prompt(branch, config, model=model, plan=cold, pins=pins)
        assert again.messages == prompt.messages
        plan = prompt.plan
