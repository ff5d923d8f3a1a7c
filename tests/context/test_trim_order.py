"""Each step of the trim order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rolling_chat.context import (
    ContextConfig,
    ContextPlan,
    Fate,
    FinalPrompt,
    Pins,
    Summary,
    build_final_prompt,
)
from tests.support.conversations import assistant, tool, user
from tests.support.prompt_rules import broken_rules

SYSTEM = {"role": "system", "content": "You are a careful assistant."}
# about 500 tokens
PAGE = "a line of output that says very little\n" * 55


def call(call_id: str, name: str = "run_command", **arguments: Any) -> dict[str, Any]:
    """An assistant message with one call; a command is unlike all others, for one run again supersedes."""
    if name == "run_command":
        arguments = {"command": f"make {call_id}", **arguments}
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def worked_turn(number: int, iterations: int = 2) -> list[dict[str, Any]]:
    """A request, some tool work, an answer."""
    messages = [user(f"request {number}")]
    for step in range(iterations):
        call_id = f"t{number}.{step}"
        messages += [call(call_id, step=step), tool(call_id, f"{number}.{step}\n{PAGE}")]
    return [*messages, assistant(f"answer {number}")]


def build(messages: list[dict[str, Any]], **keys: Any) -> FinalPrompt:
    prompt = build_final_prompt([SYSTEM, *messages], ContextConfig(**keys), model="gpt-4o")
    assert broken_rules(prompt.messages) == []
    return prompt


def fates(prompt: FinalPrompt) -> list[tuple[str, str]]:
    """Fate and layer of every message after the system message."""
    return [(row.fate.value, row.layer) for row in prompt.report.rows[1:]]


def texts(prompt: FinalPrompt) -> list[str]:
    return [message["content"] or "" for message in prompt.messages[1:]]


def test_the_masking_window_keeps_the_first_two_and_the_last_three_of_eight_results() -> None:
    messages = [user("work")]
    for number in range(1, 9):
        messages += [call(f"c{number}"), tool(f"c{number}", f"{number}\n{PAGE}")]
    prompt = build(messages, tool_result_keep_first=2, tool_result_keep_last=3)
    results = [message["content"] for message in prompt.messages if message["role"] == "tool"]
    assert [result.splitlines()[0] for result in results] == [
        "1",
        "2",
        "[result masked — ~500 tokens removed]",
        "[result masked — ~500 tokens removed]",
        "[result masked — ~500 tokens removed]",
        "6",
        "7",
        "8",
    ]


@pytest.mark.parametrize(
    ("first", "last", "masked"), [(4, 4, 0), (9, 9, 0), (0, 0, 0), (0, 1, 7), (2, 0, 5), (1, 6, 1)]
)
def test_no_result_is_masked_if_the_keep_windows_cover_all(first: int, last: int, masked: int) -> None:
    messages = [user("work")]
    for number in range(8):
        messages += [call(f"c{number}"), tool(f"c{number}", PAGE)]
    prompt = build(messages, tool_result_keep_first=first, tool_result_keep_last=last)
    assert prompt.report.count(Fate.MASKED) == masked


def test_a_result_shorter_than_its_mask_is_not_masked() -> None:
    messages = [user("work")]
    for number in range(8):
        messages += [call(f"c{number}"), tool(f"c{number}", "ok")]
    assert build(messages, tool_result_keep_first=1, tool_result_keep_last=1).report.count(Fate.MASKED) == 0


def test_with_a_prompt_cache_masks_wait_for_a_trim() -> None:
    messages = [user("work")]
    for number in range(12):
        messages += [call(f"c{number}"), tool(f"c{number}", PAGE)]
    assert build(messages, prompt_cache=True, max_context_tokens=200_000).report.count(Fate.MASKED) == 0
    assert build(messages, prompt_cache=True, max_context_tokens=10_000).report.count(Fate.MASKED) > 0


def test_step_2_a_superseded_read_is_masked_first() -> None:
    messages = [
        user("fix it"),
        call("r1", "read_file", path="a.py"),
        tool("r1", "old\n" + PAGE),
        assistant("done"),
        *worked_turn(1),
        user("again"),
        call("w1", "write_file", path="a.py", content="new"),
        tool("w1", "written"),
        assistant("written"),
        *[message for number in range(2, 7) for message in worked_turn(number, 1)],
        user("now?"),
    ]
    prompt = build(messages, max_history_tokens=4_000, trim_to=0.95, preserve_recent_turns=5)
    assert fates(prompt)[2] == ("masked", "3b")
    assert ("omitted", "2") not in fates(prompt)


def reading(number: int, path: str, **lines: int) -> list[dict[str, Any]]:
    """A turn that reads a file."""
    called, result = (
        call(f"r{number}", "read_file", path=path, **lines),
        tool(f"r{number}", f"{path}\n{PAGE}"),
    )
    return [user(f"read {number}"), called, result, assistant(f"read {path}")]


def editing(number: int, path: str, name: str = "edit_file") -> list[dict[str, Any]]:
    """A turn that writes a file, in part or as a whole."""
    called = call(f"w{number}", name, path=path, old="a", new="b")
    return [user(f"edit {number}"), called, tool(f"w{number}", "done"), assistant("edited")]


def read_of(path: str, prompt: FinalPrompt) -> bool:
    return f"{path}\n{PAGE}" in texts(prompt)


def later(*numbers: int) -> list[dict[str, Any]]:
    return [message for number in numbers for message in worked_turn(number, 1)]


@pytest.mark.parametrize(
    ("meanwhile", "stays"),
    [
        ([], True),
        (reading(8, "a.py", start=1, end=20), False),
        (reading(8, "a.py"), False),
        (editing(8, "a.py", "write_file"), False),
        (editing(8, "b.py", "write_file"), True),
    ],
    ids=["edited", "read in part", "read again", "written whole", "another file"],
)
def test_the_newest_read_of_an_edited_file_is_not_stale(meanwhile: list[dict[str, Any]], stays: bool) -> None:
    messages = [*later(0), *reading(1, "a.py"), *later(2, 3), *editing(4, "a.py"), *meanwhile, user("now?")]
    read = next(index for index, message in enumerate(messages) if message.get("tool_call_id") == "r1") + 1
    for preserved in (1, 3, 9):
        keys = {"preserve_recent_turns": preserved, "trim_to": 0.99}
        size = build(messages, max_history_tokens=0).report.history
        prompt = build(messages, max_history_tokens=size - 100, **keys)
        is_recent = preserved > len(meanwhile) // 4
        assert (prompt.report.rows[read].fate is Fate.SENT) == (stays and is_recent)


def test_the_turn_of_an_edited_file_is_the_last_unprotected_turn_to_be_dropped() -> None:
    messages = [*later(0), *reading(1, "a.py"), *later(2, 3, 4, 5), *editing(6, "a.py"), user("now?")]
    keys = {"preserve_recent_turns": 1, "trim_to": 1.0}
    with_work, seen = PAGE.splitlines()[0], list[tuple[bool, bool, bool]]()
    for cap in range(3_600, 100, -100):
        prompt = build(messages, max_history_tokens=cap, **keys)
        others = [text for text in texts(prompt) if text.startswith(("0.0", "2.0", "3.0", "4.0", "5.0"))]
        has_results = any(with_work in text for text in others)
        seen.append((read_of("a.py", prompt), has_results, prompt.report.count(Fate.OMITTED) > 0))
    assert all(is_read for is_read, has_results, _ in seen if has_results)
    assert (True, False, True) in seen  # the others are down to request and answer
    assert not seen[-1][0]


@pytest.mark.parametrize("masking", ["exact", "steps"])
def test_between_the_keep_windows_the_file_that_is_being_edited_is_masked_last(masking: str) -> None:
    messages = [user("work"), call("r0", "read_file", path="a.py"), tool("r0", f"a.py\n{PAGE}")]
    messages += [call("w0", "edit_file", path="a.py", old="a", new="b"), tool("w0", "done")]
    for number in range(8):
        messages += [call(f"c{number}"), tool(f"c{number}", f"{number}\n{PAGE}")]
    keys = {"tool_result_keep_first": 0, "tool_result_keep_last": 2, "tool_result_masking": masking}
    roomy, tight = (build(messages, max_context_tokens=window, **keys) for window in (6_000, 2_000))
    assert read_of("a.py", roomy)
    assert roomy.report.count(Fate.MASKED) >= 5
    assert not read_of("a.py", tight)


def test_step_3_results_of_older_turns_are_masked_before_any_turn_is_dropped() -> None:
    messages = [message for number in range(8) for message in worked_turn(number)] + [user("now?")]
    prompt = build(messages, max_history_tokens=7_000, trim_to=0.9)
    got = fates(prompt)
    assert ("masked", "3b") in got
    assert ("omitted", "2") not in got
    first_whole = next(
        position
        for position, row in enumerate(prompt.report.rows[1:])
        if row.role == "tool" and row.fate is Fate.SENT
    )
    assert all(
        row.fate is Fate.MASKED for row in prompt.report.rows[1 : first_whole + 1] if row.role == "tool"
    )


def test_step_4_long_arguments_of_answered_calls_are_cut_and_stay_json() -> None:
    written = "x = 1  # a line of a file\n" * 300
    messages = [
        user("write it"),
        call("w", "write_file", path="a.py", content=written),
        tool("w", "written"),
        *[message for number in range(4) for message in (call(f"c{number}"), tool(f"c{number}", PAGE))],
    ]
    prompt = build(messages, max_context_tokens=7_000, trim_to=0.9)
    arguments = json.loads(prompt.messages[2]["tool_calls"][0]["function"]["arguments"])
    assert arguments["path"] == "a.py"
    assert "[truncated: kept first ~" in arguments["content"]
    assert fates(prompt)[1] == ("shortened", "arguments")


def test_a_signed_message_is_unchanged_or_omitted() -> None:
    signed = call("w", "write_file", path="a.py", content="x = 1\n" * 800)
    signed["thinking_blocks"] = [{"type": "thinking", "thinking": "hm", "signature": "abc"}]
    messages = [user("write it"), signed, tool("w", "ok")]
    for number in range(6):
        messages += [call(f"c{number}"), tool(f"c{number}", PAGE)]
    prompt = build(messages, max_context_tokens=7_000)
    assert signed in prompt.messages or fates(prompt)[1] == ("omitted", "3c")


def test_step_5_turns_are_reduced_to_request_and_answer_before_they_are_dropped() -> None:
    messages = [message for number in range(10) for message in worked_turn(number)] + [user("now?")]
    keys = {"tool_result_keep_first": 0, "tool_result_keep_last": 0, "preserve_recent_turns": 3}
    prompt = build(messages, max_history_tokens=5_000, **keys)
    assert texts(prompt)[:2] == ["request 0", "answer 0"]
    assert "0.0\n" + PAGE not in texts(prompt)
    assert "9.0\n" + PAGE in texts(prompt)


def test_the_task_is_kept_longer_than_the_turns_that_follow_it() -> None:
    messages = [
        message for number in range(60) for message in (user(f"q{number} {PAGE}"), assistant(f"a{number}"))
    ]
    prompt = build([*messages, user("now?")], max_history_tokens=6_000)
    assert texts(prompt)[0].startswith("q0 ")
    assert not any(text.startswith("q1 ") for text in texts(prompt))
    oldest_first = build([*messages, user("now?")], max_history_tokens=6_000, trim_strategy="oldest-first")
    assert not texts(oldest_first)[0].startswith("q0 ")


def test_step_6_older_iterations_of_the_turn_are_omitted_whole_and_never_the_newest() -> None:
    messages = [user("work")]
    for number in range(20):
        messages += [assistant("thinking aloud " * 120, (f"c{number}", "run")), tool(f"c{number}", "ok")]
    prompt = build(messages, max_context_tokens=6_000)
    assert ("omitted", "3c") in fates(prompt)
    assert prompt.messages[1] == user("work")
    assert prompt.messages[-1] == messages[-1]


def test_step_7_protected_turns_are_dropped_last_but_the_history_cap_applies_to_them() -> None:
    messages = [message for number in range(5) for message in worked_turn(number, 4)] + [user("now?")]
    prompt = build(messages, max_history_tokens=3_000, preserve_recent_turns=5)
    assert prompt.report.history <= 3_000
    assert "answer 4" in texts(prompt)


def test_step_8_the_newest_arguments_are_levelled_when_results_are_not_enough() -> None:
    written = "x = 1  # a line of a file\n" * 2_000
    messages = [user("write it"), call("w", "write_file", path="a.py", content=written), tool("w", "written")]
    prompt = build(messages, max_context_tokens=8_192)
    report = prompt.report
    assert report.bound > 0.9 * (report.window - report.reserve - report.margin)
    assert json.loads(prompt.messages[2]["tool_calls"][0]["function"]["arguments"])["path"] == "a.py"


def test_a_giant_newest_result_does_not_displace_the_conversation() -> None:
    messages = [message for number in range(3) for message in worked_turn(number, 1)]
    messages += [user("why?"), call("big"), tool("big", PAGE * 400)]
    prompt = build(messages, max_context_tokens=16_000, max_tool_result_tokens=10**9)
    assert texts(prompt)[0] == "request 0"
    assert prompt.report.rows[-1].layer == "levelled"


def test_layer_1_keeps_at_least_a_hundred_messages_and_omits_whole_turns() -> None:
    messages = [message for number in range(200) for message in (user(f"q{number}"), assistant(f"a{number}"))]
    prompt = build([*messages, user("now?")], max_context_tokens=8_192, max_history_tokens=0)
    assert len(prompt.messages) <= 0.6 * 100 + 2
    assert {layer for fate, layer in fates(prompt) if fate == "omitted"} == {"1"}
    assert texts(prompt)[0] == "q0"


def test_a_long_running_turn_does_not_displace_history_by_its_number_of_messages() -> None:
    messages = [user("the task"), assistant("yes"), user("a second"), assistant("done"), user("work")]
    plan = None
    for number in range(25):
        calls = [(f"c{number}.{position}", "run") for position in range(3)]
        messages += [assistant("", *calls), *(tool(one, "ok") for one, _ in calls)]
        config = ContextConfig(max_context_tokens=8_192)
        prompt = build_final_prompt([SYSTEM, *messages], config, model="gpt-4o", plan=plan)
        plan = prompt.plan
        assert prompt.messages[:6] == [SYSTEM, *messages[:5]]
        assert prompt.report.count(Fate.SENT) == 1 + len(messages)


def test_more_pinned_messages_than_layer_1_allows_cost_no_summary_and_no_result() -> None:
    messages = [SYSTEM, *[said for n in range(80) for said in (user(f"q{n}"), assistant(f"a{n}"))]]
    messages += [user("read"), call("r", "read_file", path="a.py"), tool("r", PAGE), assistant("read")]
    prompt = build_final_prompt(
        [*messages, user("now?")],
        ContextConfig(max_context_tokens=8_192),
        model="gpt-4o",
        pins=Pins(frozenset(range(41, len(messages)))),
        summary=Summary("What was said first.", through=40),
    )
    assert "What was said first." in prompt.messages[0]["content"]
    assert tool("r", PAGE) in prompt.messages
    assert broken_rules(prompt.messages) == []


def test_trim_to_one_fills_exactly() -> None:
    messages = [
        message for number in range(80) for message in (user(f"q{number} {PAGE}"), assistant(f"a{number}"))
    ]
    exact = build([*messages, user("now?")], max_history_tokens=8_000, trim_to=1.0)
    low = build([*messages, user("now?")], max_history_tokens=8_000)
    assert 7_000 < exact.report.history <= 8_000
    assert low.report.history <= 0.6 * 8_000


def test_the_rest_of_older_turns_is_dropped_before_newer_work_of_the_current_turn() -> None:
    messages = [message for number in range(3) for message in worked_turn(number)]
    messages.append(user("now"))
    for step in range(4):
        messages += [call(f"n{step}", step=step), tool(f"n{step}", f"now {step}\n{PAGE}")]
    prompt = build(messages, max_context_tokens=3_600, reserved_output_tokens=100, trim_to=1.0)
    sent = "\n".join(texts(prompt))
    assert all(f"now {step}" in sent for step in range(4))
    assert all(f"request {number}" in sent for number in range(3))
    assert "0.0\na line" not in sent


def test_the_last_omissions_are_restored_if_a_large_item_freed_more_room_than_needed() -> None:
    large = [user("large"), assistant("word " * 4_000)]
    small = [message for n in range(4) for message in (user(f"small {n}"), assistant(f"answer {n}"))]
    messages = [*worked_turn(0, 0), *small, *large, user("now " + "word " * 600)]
    keys: dict[str, Any] = {"max_context_tokens": 3_000, "reserved_output_tokens": 100, "trim_to": 1.0}
    careful = "\n".join(texts(build(messages, **keys)))
    assert "small 3" in careful
    assert "word " * 4_000 not in careful
    plain = "\n".join(texts(build(messages, trim_strategy="oldest-first", **keys)))
    assert "small 3" not in plain


def test_a_superseded_read_is_not_restored_even_if_it_fits() -> None:
    messages = [user("look"), call("a", "read_file", path="x"), tool("a", f"old\n{PAGE}")]
    messages += [call("b", "write_file", path="x", content="new"), tool("b", "written"), assistant("done")]
    messages += [*worked_turn(1, 3), user("now")]
    prompt = build(messages, max_context_tokens=2_600, reserved_output_tokens=100, trim_to=1.0)
    sent = "\n".join(texts(prompt))
    assert "old\n" not in sent
    assert prompt.report.bound > 0.5 * 2_600


def test_the_task_is_kept_longer_than_its_answer_and_gets_a_placeholder_reply() -> None:
    messages = [user("the task"), assistant("word " * 1_500)]
    for number in range(8):
        messages += [user(f"request {number}"), assistant(f"answer {number} " + "word " * 150)]
    messages.append(user("now"))
    prompt = build(messages, max_context_tokens=1_500, reserved_output_tokens=100)
    assert texts(prompt)[:2] == ["the task", "[the reply is no longer in this prompt]"]
    again = build_final_prompt(
        [SYSTEM, *messages],
        ContextConfig(max_context_tokens=1_500, reserved_output_tokens=100),
        model="gpt-4o",
        plan=ContextPlan.from_json(prompt.plan.to_json()),
    )
    assert again.messages == prompt.messages


def test_a_giant_older_result_is_cut_to_the_room_that_is_left_and_not_lost() -> None:
    lines = "".join(f"line {number} of the log\n" for number in range(20_000))
    messages = [user("look"), call("a"), tool("a", lines), assistant("seen"), *worked_turn(1), user("now")]
    prompt = build(
        messages,
        max_context_tokens=8_000,
        reserved_output_tokens=500,
        max_tool_result_tokens=1_000_000,
        max_history_tokens=0,
        trim_to=1.0,
    )
    assert fates(prompt)[2] == ("shortened", "levelled")
    assert all(fate == ("sent", "") for position, fate in enumerate(fates(prompt)) if position != 2)
    assert prompt.report.bound > 0.9 * (8_000 - 500 - 800)


@pytest.mark.parametrize("window", [17_000, 40_000])
def test_history_over_its_cap_loses_calls_with_long_arguments_before_turns_whatever_the_window(
    window: int,
) -> None:
    written = "x = 1  # a line of a file\n" * 300
    messages = []
    for number in range(8):
        messages += [user(f"q{number}"), call(f"w{number}", "write_file", path="a.py", content=written)]
        messages += [tool(f"w{number}", "written"), assistant(f"a{number} " + "word " * 300)]
    keys = {"max_history_tokens": 8_000, "trim_to": 0.9, "preserve_recent_turns": 0}
    prompt = build([*messages, user("now?")], max_context_tokens=window, **keys)
    spoken = [row for row in prompt.report.rows[1:] if row.role == "user" or row.index % 4 == 0]
    assert {row.fate for row in spoken} == {Fate.SENT}
    assert ("omitted", "2") in fates(prompt)


def test_history_over_its_cap_costs_the_current_turn_nothing() -> None:
    messages = [message for number in range(12) for message in worked_turn(number)] + [user("work")]
    for number in range(10):
        messages += [call(f"c{number}"), tool(f"c{number}", f"{number}\n{PAGE}")]
    prompt = build(messages, max_context_tokens=100_000, max_history_tokens=4_000, prompt_cache=True)
    assert set(fates(prompt)[-21:]) == {("sent", "")}
    assert prompt.report.history <= 4_000


def _replies(*words: int) -> list[dict[str, Any]]:
    """Turns of a short request and an answer of so many words, then a request."""
    turns = ([user(f"question {at}"), assistant(f"answer {at} " * count)] for at, count in enumerate(words))
    return [*(message for turn in turns for message in turn), user("and now?")]


def test_a_text_nearly_as_large_as_the_room_is_kept_in_part_and_can_be_recalled() -> None:
    prompt = build(_replies(200, 3_000), max_context_tokens=8_192, trim_to=1.0, recall=True)
    answer = next(text for text in texts(prompt) if text.startswith("answer 1"))
    assert fates(prompt)[-2] == ("shortened", "2")
    assert "\n[truncated: kept first+last ~" in answer
    assert "\n[recall: r4]\n" in answer
    assert answer.endswith("answer 1 ")


def test_a_shortened_text_stays_the_same_until_the_next_trim() -> None:
    messages = [SYSTEM, *_replies(200, 3_000)]
    config = ContextConfig(max_context_tokens=8_192, trim_to=0.9)
    first = build_final_prompt(messages, config, model="gpt-4o")
    stored = ContextPlan.from_json(json.loads(json.dumps(first.plan.to_json())))
    assert first.report.count(Fate.SHORTENED) == 1
    for plan in (first.plan, stored):
        more = [*messages, assistant("this"), user("go on")]
        second = build_final_prompt(more, config, model="gpt-4o", plan=plan)
        assert second.messages[: len(first.messages)] == first.messages


def test_small_messages_are_restored_whole_before_a_small_part_of_a_large_one() -> None:
    prompt = build(
        _replies(150, 150, 20_000), max_context_tokens=4_096, trim_to=1.0, reserved_output_tokens=0
    )
    kept = [row.fate for row in prompt.report.rows[1:5]]
    assert kept == [Fate.SENT] * 4


@pytest.mark.parametrize(
    "beside",
    [
        {"reasoning_content": "I think"},
        {"thinking_blocks": [{"type": "thinking", "thinking": "I think", "signature": "c2ln"}]},
    ],
)
def test_an_answer_with_reasoning_is_omitted_whole_or_not_at_all(beside: dict[str, Any]) -> None:
    messages = _replies(200, 3_000)
    messages[3] |= beside
    prompt = build(messages, max_context_tokens=8_192, trim_to=1.0)
    assert fates(prompt)[3][0] == "omitted"


def test_the_task_is_dropped_before_the_last_exchange() -> None:
    messages = [user("the task: " + "word " * 900), assistant("done")]
    for number in range(6):
        messages += [user(f"request {number}"), assistant(f"answer {number} " * 120)]
    prompt = build([*messages, user("go on")], max_context_tokens=4_096, trim_to=1.0)
    assert prompt.report.rows[1].fate is not Fate.SENT
    assert [row.fate for row in prompt.report.rows[-11:]] == [Fate.SENT] * 11


def test_old_turns_are_dropped_before_the_newest_work_on_the_request() -> None:
    messages = [user("old"), assistant("an old answer " * 700), user("now work")]
    for number in range(8):
        messages += [call(f"c{number}"), tool(f"c{number}", "done")]
    prompt = build(messages, max_context_tokens=4_096, trim_to=1.0)
    assert prompt.report.rows[2].fate in {Fate.OMITTED, Fate.SHORTENED}
    assert {row.fate for row in prompt.report.rows[3:]} == {Fate.SENT}
