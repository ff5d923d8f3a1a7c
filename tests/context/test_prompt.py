"""build_final_prompt: never over, nothing orphaned, every message accounted for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

from rolling_chat.context import (
    ContextConfig,
    ContextOverflowError,
    ContextPlan,
    Fate,
    build_final_prompt,
    prompt_bound,
)
from rolling_chat.messages import Message
from tests.support.conversations import assistant, tool, user
from tests.support.prompt_rules import broken_rules

SYSTEM = {"role": "system", "content": "You are a careful assistant."}
MODELS = st.sampled_from(["gpt-4o", "claude-sonnet-4-5", "demo/offline", "nobody/knows", None])
WINDOWS = st.integers(300, 20_000)
TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]


def chat(turns: int, words: int = 60) -> list[dict[str, Any]]:
    messages = [SYSTEM]
    for number in range(turns):
        messages += [
            user(f"question {number} " + "word " * words),
            assistant(f"answer {number} " + "word " * words),
        ]
    return messages


def test_a_short_conversation_is_sent_unchanged_with_rolling_on_and_off() -> None:
    messages = [*chat(2), user("and now?")]
    on = build_final_prompt(messages, ContextConfig(), model="gpt-4o")
    off = build_final_prompt(messages, ContextConfig(enabled=False), model="gpt-4o")
    assert on.messages == off.messages == messages


def test_older_turns_are_omitted_whole_and_the_system_message_counts_their_messages() -> None:
    prompt = build_final_prompt(
        [*chat(60), user("and now?")], ContextConfig(max_context_tokens=8_192), model="gpt-4o"
    )
    omitted = prompt.report.count(Fate.OMITTED)
    assert omitted > 0
    assert prompt.messages[0]["content"] == (
        f"{SYSTEM['content']}\n\n[conversation truncated — {omitted} older messages omitted]"
    )
    assert prompt.messages[1]["role"] == "user"
    assert len(prompt.messages) - 1 + omitted == 121


def test_a_trim_goes_down_to_the_low_water_mark_and_then_the_prefix_stays() -> None:
    config = ContextConfig(max_context_tokens=8_192)
    messages = [*chat(60), user("and now?")]
    first = build_final_prompt(messages, config, model="gpt-4o")
    assert first.report.history <= 0.6 * first.report.history_budget + 200
    longer = [*messages, assistant("yes"), user("good")]
    second = build_final_prompt(longer, config, model="gpt-4o", plan=first.plan)
    assert second.messages[: len(first.messages)] == first.messages


def test_history_is_limited_to_its_cap_even_in_a_large_window() -> None:
    config = ContextConfig(max_context_tokens=200_000, max_history_tokens=2_000)
    prompt = build_final_prompt([*chat(60), user("and now?")], config, model="gpt-4o")
    assert prompt.report.history <= 2_000
    whole = build_final_prompt(
        [*chat(60), user("and now?")],
        ContextConfig(max_context_tokens=200_000, max_history_tokens=0),
        model="gpt-4o",
    )
    assert whole.report.count(Fate.OMITTED) == 0


def test_an_answered_turn_counts_as_history() -> None:
    running = build_final_prompt([SYSTEM, user("why?")], ContextConfig(), model="gpt-4o").report
    answered = build_final_prompt(
        [SYSTEM, user("why?"), assistant("because")], ContextConfig(), model="gpt-4o"
    ).report
    assert (running.history, running.current > 0) == (0, True)
    assert (answered.history > 0, answered.current) == (True, 0)


def test_an_oversize_newest_result_is_levelled_and_fills_the_room() -> None:
    big = "2026-11-21 INFO something happened\n" * 20_000
    messages = [SYSTEM, user("why?"), assistant("", ("1", "run")), tool("1", big)]
    config = ContextConfig(max_context_tokens=32_000, max_tool_result_tokens=10**9)
    prompt = build_final_prompt(messages, config, model="gpt-4o")
    report = prompt.report
    assert prompt.messages[1] == user("why?")
    assert report.rows[-1].layer == "levelled"
    assert report.bound > 0.9 * (report.window - report.reserve - report.margin)
    assert broken_rules(prompt.messages) == []


def test_older_iterations_of_the_turn_are_omitted_before_the_newest() -> None:
    messages = [SYSTEM, user("work")]
    for number in range(12):
        messages += [assistant("", (f"c{number}", "run")), tool(f"c{number}", "output line\n" * 150)]
    config = ContextConfig(max_context_tokens=8_192, tool_result_keep_first=0, tool_result_keep_last=0)
    prompt = build_final_prompt(messages, config, model="gpt-4o")
    assert prompt.messages[1] == user("work")
    assert prompt.messages[-1] == messages[-1]
    assert {row.layer for row in prompt.report.rows if row.fate is Fate.OMITTED} == {"3c"}
    assert broken_rules(prompt.messages) == []


def test_with_rolling_off_what_does_not_fit_is_refused_and_the_plan_is_ignored() -> None:
    messages = [*chat(80), user("and now?")]
    config = ContextConfig(max_context_tokens=8_192)
    plan = build_final_prompt(messages, config, model="gpt-4o").plan
    with pytest.raises(
        ContextOverflowError, match=r"Cannot fit request within context limit\. Current: \d+ tokens"
    ):
        build_final_prompt(
            messages, ContextConfig(max_context_tokens=8_192, enabled=False), model="gpt-4o", plan=plan
        )
    short = build_final_prompt(messages[:3], ContextConfig(enabled=False), model="gpt-4o", plan=plan)
    assert short.plan == plan


def test_a_refusal_names_the_smallest_window_that_would_be_enough() -> None:
    messages = [SYSTEM, user("word " * 9_000)]
    with pytest.raises(ContextOverflowError) as caught:
        build_final_prompt(messages, ContextConfig(max_context_tokens=8_192), model="gpt-4o")
    error = caught.value
    assert error.largest[0][0] == "current message"
    assert "Please narrow the scope or start a new session." in str(error)
    fits = ContextConfig(max_context_tokens=error.smallest_window)
    assert build_final_prompt(messages, fits, model="gpt-4o").within_budget
    with pytest.raises(ContextOverflowError):
        build_final_prompt(
            messages, ContextConfig(max_context_tokens=error.smallest_window - 1), model="gpt-4o"
        )


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize(("words", "reserve"), [(1_500, 1_365), (2_300, 512), (3_100, 256)])
def test_the_reserve_shrinks_before_a_first_message_is_refused(
    words: int, reserve: int, enabled: bool
) -> None:
    config = ContextConfig(max_context_tokens=4_096, enabled=enabled)
    report = build_final_prompt([SYSTEM, user("word " * words)], config, model="gpt-4o").report
    assert report.reserve == reserve
    assert report.reduced_reserve == (reserve if reserve < 1_365 else 0)
    assert report.bound + report.reserve + report.margin <= report.window


def test_the_reserve_is_restored_once_there_is_something_to_omit() -> None:
    config = ContextConfig(max_context_tokens=4_096)
    messages = [SYSTEM, user("word " * 2_300)]
    tight = build_final_prompt(messages, config, model="gpt-4o")
    messages += [assistant("yes"), user("and now?")]
    after = build_final_prompt(messages, config, model="gpt-4o", plan=tight.plan)
    assert (tight.report.reduced_reserve, after.report.reduced_reserve) == (512, 0)
    assert after.report.count(Fate.SHORTENED) == 1


def test_with_rolling_off_history_is_refused_before_the_reserve_shrinks() -> None:
    config = ContextConfig(max_context_tokens=4_096, enabled=False)
    messages = [SYSTEM, user("word " * 1_200), assistant("word " * 1_300), user("and now?")]
    with pytest.raises(ContextOverflowError):
        build_final_prompt(messages, config, model="gpt-4o")


def test_nothing_is_omitted_from_a_prompt_that_fits_to_the_last_token() -> None:
    messages = [*chat(6), user("and now?")]
    config = ContextConfig(reserved_output_tokens=0, safety_margin=0, max_history_tokens=0)
    bound = build_final_prompt(messages, config, model="gpt-4o").report.bound
    exact = replace(config, max_context_tokens=bound)
    assert build_final_prompt(messages, exact, model="gpt-4o").messages == messages
    assert len(build_final_prompt(messages, replace(exact, max_context_tokens=bound - 1)).messages) < len(
        messages
    )


def test_without_a_cap_an_overestimate_omits_nothing() -> None:
    messages = [SYSTEM, user(" " * 60_000 + "x"), assistant("I see nothing"), user("look again")]
    config = ContextConfig(max_context_tokens=8_192, max_history_tokens=0, token_estimator="chars")
    assert build_final_prompt(messages, config, model="gpt-4o").messages == messages


def test_messages_in_are_messages_out_with_their_ids() -> None:
    messages = [Message("system", "s"), Message("user", "hello", id="7")]
    prompt = build_final_prompt(messages, ContextConfig(), model="gpt-4o")
    assert prompt.messages == messages
    assert prompt.messages[1] is messages[1]


def test_a_plan_survives_json() -> None:
    plan = build_final_prompt(
        [*chat(60), user("?")], ContextConfig(max_context_tokens=8_192), model="gpt-4o"
    ).plan
    assert ContextPlan.from_json(plan.to_json()) == plan


def test_a_request_without_any_message_gets_a_user_message() -> None:
    first = build_final_prompt([SYSTEM], ContextConfig(), model="gpt-4o")
    assert [message["role"] for message in first.messages] == ["system", "user"]
    opened = [SYSTEM, assistant("hello"), user("hi")]
    second = build_final_prompt(opened, ContextConfig(), model="gpt-4o", plan=first.plan)
    assert second.messages[: len(first.messages)] == first.messages


def test_a_larger_window_needs_a_new_plan() -> None:
    messages = [*chat(60), user("and now?")]
    small = build_final_prompt(messages, ContextConfig(max_context_tokens=8_192), model="gpt-4o")
    large = build_final_prompt(
        messages,
        ContextConfig(max_context_tokens=64_000, max_history_tokens=0),
        model="gpt-4o",
        plan=small.plan,
    )
    assert large.report.count(Fate.OMITTED) == 0


@pytest.mark.parametrize("enabled", [True, False])
def test_no_messages_make_a_prompt_without_messages(enabled: bool) -> None:
    config = ContextConfig(enabled=enabled)
    prompt = build_final_prompt([], config, model="gpt-4o")
    assert prompt.messages == []
    assert prompt.within_budget
    assert sum(prompt.report.fates.values()) == len(prompt.report.rows) == 0
    again = build_final_prompt([user("hi")], config, model="gpt-4o", plan=prompt.plan)
    assert again.messages == [user("hi")]


def test_an_empty_system_message_is_left_out_and_reported() -> None:
    prompt = build_final_prompt([{"role": "system", "content": " "}, user("hi")], ContextConfig())
    assert prompt.messages == [user("hi")]
    assert [row.fate for row in prompt.report.rows] == [Fate.REPAIRED, Fate.SENT]


def test_white_space_beside_calls_is_empty_and_turn_marks_are_not_sent() -> None:
    messages = [
        SYSTEM,
        user("a"),
        assistant("\n\n", ("1", "x")),
        tool("1", "r"),
        {**user("b"), "turn": "same"},
    ]
    prompt = build_final_prompt(messages, ContextConfig(), model="gpt-4o")
    assert prompt.messages[2]["content"] is None
    assert prompt.messages[4] == user("b")
    assert prompt_bound(prompt.messages, model="gpt-4o") == prompt.report.bound


def test_many_small_newest_results_do_not_refuse_what_fits_without_the_history() -> None:
    calls = [(str(number), "run") for number in range(70)]
    results = [tool(one, "some words of a log line\n" * 40) for one, _ in calls]
    messages = [*chat(10, 100), user("work"), assistant("", *calls), *results]
    prompt = build_final_prompt(messages, ContextConfig(max_context_tokens=9_000), model="gpt-4o")
    assert broken_rules(prompt.messages) == []


def test_the_smallest_window_in_a_refusal_respects_the_output_limit() -> None:
    messages = [SYSTEM, user("word " * 9_000)]
    keys = {"max_output_tokens": 100}
    with pytest.raises(ContextOverflowError) as caught:
        build_final_prompt(messages, ContextConfig(max_context_tokens=8_192, **keys), model="gpt-4o")
    window = caught.value.smallest_window
    assert build_final_prompt(messages, ContextConfig(max_context_tokens=window, **keys), model="gpt-4o")
    with pytest.raises(ContextOverflowError):
        build_final_prompt(messages, ContextConfig(max_context_tokens=window - 1, **keys), model="gpt-4o")


def test_a_result_without_a_name_is_cut_in_the_style_of_its_tool() -> None:
    messages = [SYSTEM, user("a"), assistant("", ("1", "run_command")), tool("1", "first\n" * 900 + "last")]
    config = ContextConfig(max_tool_result_tokens=100, tools={"run_command": "tail"})
    prompt = build_final_prompt(messages, config, model="gpt-4o")
    assert prompt.messages[-1]["content"].endswith("last")
