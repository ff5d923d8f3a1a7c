"""Rows of JSON, and the table."""

from __future__ import annotations

import io
import json

from rich.console import Console

from rolling_chat.context import ContextConfig
from rolling_chat.replay import Tally, Totals, as_row, draw_table, refusals_line, repairs_line, replay
from tests.support.conversations import assistant, tool, user
from tests.support.replay import SYSTEM, long_conversation, replayed, transcript

KEYS = [
    "file", "conversation", "request", "at_message", "token_count", "bound", "max_input_tokens",
    "reserve", "margin", "within_budget", "overflow", "kept", "dropped", "masked", "truncated", "summarised",
    "cached_prefix_tokens",
]  # fmt: skip


def tally_of(messages: list[dict[str, object]], name: str = "talk", **settings: object) -> Tally:
    tally = Tally(name)
    for each in replayed(messages, **settings):
        tally.add(each)
    return tally


def printed(*tallies: Tally) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=160).print(draw_table(tallies))
    return out.getvalue().splitlines()


def test_a_row_has_every_key_and_no_other() -> None:
    [each] = replayed([SYSTEM, user("one")], max_context_tokens=8192)
    row = as_row(each)
    assert list(row) == KEYS
    assert row["token_count"] <= row["bound"] <= row["max_input_tokens"] - row["reserve"] - row["margin"]
    assert row | {"token_count": 0, "bound": 0} == {
        "file": None,
        "conversation": "talk",
        "request": 1,
        "at_message": 2,
        "token_count": 0,
        "bound": 0,
        "max_input_tokens": 8192,
        "reserve": 2730,
        "margin": 819,
        "within_budget": True,
        "overflow": None,
        "kept": 2,
        "dropped": 0,
        "masked": 0,
        "truncated": 0,
        "summarised": 0,
        "cached_prefix_tokens": 0,
    }


def test_the_prompt_comes_along_as_the_transcript_has_it() -> None:
    call = assistant("", ("a", "f")) | {"reasoning_content": "hm"}
    call["tool_calls"][0]["index"] = 0
    talk = transcript([SYSTEM, user("one") | {"timestamp": 3}, call, tool("a", "two")])
    *_, last = replay(talk, ContextConfig())
    assert as_row(last, prompt_of=talk)["messages"] == list(talk.sources)


def test_what_was_changed_comes_along_as_it_is_sent() -> None:
    talk = transcript([SYSTEM, user("one"), assistant("", ("a", "f")), tool("a", "many words " * 5000)])
    *_, last = replay(talk, ContextConfig(max_tool_result_tokens=100))
    row = as_row(last, prompt_of=talk)
    assert row["truncated"] == 1
    assert "[truncated: kept parts" in row["messages"][-1]["content"]
    json.dumps(row)


def test_the_row_of_an_overflow_has_its_line() -> None:
    [each] = replayed([SYSTEM, user("huge " * 20_000)], max_context_tokens=4096)
    row = as_row(each)
    assert row["within_budget"] is False
    assert row["overflow"].startswith("Cannot fit request within context limit.")


def test_a_message_that_was_left_out_of_ten_requests_is_one_message() -> None:
    tally = tally_of(long_conversation(20), max_context_tokens=8192, max_tool_result_tokens=600)
    last = replayed(long_conversation(20), max_context_tokens=8192, max_tool_result_tokens=600)[-1]
    assert 0 < tally.dropped <= last.at_message
    assert tally.requests == 40
    assert tally.trims > 0
    assert 0 < tally.cached_share < 1


def test_the_table_has_a_line_a_conversation_and_one_for_all() -> None:
    one = tally_of([user("one")], "first")
    two = tally_of([user("huge " * 20_000)], "second\x1b[31m [bold]", max_context_tokens=4096)
    lines = printed(one, two)
    assert lines[0].split()[:2] == ["conversation", "requests"]
    assert lines[1].split()[:2] == ["first", "1"]
    assert "second␛[31m [bold]" in lines[2]
    assert lines[-1].split()[:2] == ["all", "2"]
    assert not any("all" in line.split()[:1] for line in printed(one))


def test_names_that_differ_only_at_their_end_are_told_apart() -> None:
    start = "the-same-beginning-" * 6
    lines = printed(*(tally_of([user("one")], f"{start}{end}") for end in ("first", "second")))
    assert "first" in lines[1]
    assert "second" in lines[2]


def test_refusals_are_reported_with_their_reason_and_the_window_for_all() -> None:
    small = tally_of([SYSTEM, user("huge " * 9_000)], "small", max_context_tokens=4096)
    large = tally_of([SYSTEM, user("huge " * 20_000)], "large", max_context_tokens=4096)
    line = refusals_line(Totals.of([small, large]))
    assert line.startswith(f"refused: 2 of 2 requests; a window of {large.smallest_window:,} tokens would do")
    assert "the first: talk, request 1: Cannot fit request" in line
    assert "Largest: current message" in line
    window = max(small.smallest_window, large.smallest_window)
    assert not tally_of([SYSTEM, user("huge " * 20_000)], max_context_tokens=window).overflows
    assert refusals_line(Totals.of([tally_of([user("fine")])])) == ""


def test_repairs_are_reported_in_one_line() -> None:
    broken = tally_of([user("one"), tool("lost", "orphan"), assistant("x")])
    broken.add_repaired(2)
    line = repairs_line(Totals.of([broken, tally_of([user("fine")])]))
    assert line.startswith("repaired in the prompts: 3 messages of 1 conversation (")
    assert "2 × a field of the wrong type" in line
    assert repairs_line(Totals.of([tally_of([user("fine")])])) == ""
