"""What the transcript shows of every item's fate is what the report's rows say."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolling_chat.commands.context import size_of
from rolling_chat.context import ContextConfig, ContextOverflowError, Pins, Summary, build_final_prompt
from rolling_chat.context.report import Fate, PromptReport, Row, Rows
from rolling_chat.context.turns import opens_turn
from rolling_chat.messages import Message
from rolling_chat.partly_read import PartlyRead
from rolling_chat.tui.state.fates import Fates, ItemFate, MessageIndices, item_fates
from rolling_chat.tui.state.items import call_id, item_showing, items_of, reasoning_id
from tests.support.conversations import assistant, conversations, tool, torn_conversations, user
from tests.support.replay import SYSTEM, long_conversation

_TALK = [*long_conversation(turns=12), user("and now?")]
_GONE = {Fate.SUMMARIZED, Fate.OMITTED}


def _messages(given: Sequence[dict[str, Any]]) -> list[Message]:
    return [Message.from_dict(one, id=f"m{place}") for place, one in enumerate(given)]


def _report(messages: Sequence[Message], **config: Any) -> PromptReport:
    pins, summary = config.pop("pins", None), config.pop("summary", None)
    try:
        return build_final_prompt(
            messages, ContextConfig(**config), model="gpt-4o", pins=pins, summary=summary, take_summary=True
        ).report
    except ContextOverflowError as error:
        return error.report


def _fates(given: Sequence[dict[str, Any]], **config: Any) -> tuple[Fates, dict[str, Row]]:
    messages = _messages(given)
    report = _report(messages, **config)
    return item_fates(messages[1:], report), {row.id: row for row in report.rows}


def _with_fates(report: PromptReport, *fates: tuple[str, str, Fate, int, int]) -> PromptReport:
    """The report with these rows: id, role, fate, tokens before and after."""
    rows = [Row(at, one[0], one[1], one[2], "", one[3], one[4]) for at, one in enumerate(fates)]  # type: ignore[arg-type]
    counts = {fate: sum(row.fate is fate for row in rows) for fate in Fate}
    return replace(report, rows=Rows(len(rows), rows.__getitem__), fates=counts)


def test_what_is_sent_as_it_was_said_has_no_fate_but_a_tool_its_tokens() -> None:
    fates, rows = _fates([SYSTEM, user("look"), assistant("", ("a", "read_file")), tool("a", "x = 1")])
    assert dict(fates.items) == {"m2:call:0": ItemFate(False, f"{rows['m3'].tokens_before} tokens")}
    assert (fates.boundary, fates.rule) == ("", "")


def test_a_result_over_the_cap_says_what_it_came_to() -> None:
    said = [SYSTEM, user("look"), assistant("", ("a", "read_file")), tool("a", "some line\n" * 3000)]
    fates, rows = _fates(said, max_tool_result_tokens=800)
    row = rows["m3"]
    assert row.tokens_before > 1000 > row.tokens_after
    note = f"{row.tokens_before:,} → {row.tokens_after:,} tokens · shortened"
    assert fates.items["m2:call:0"] == ItemFate(False, note)


def test_a_masked_result_is_not_dimmed_for_its_call_is_still_sent() -> None:
    said = [SYSTEM, user("look")]
    for at in range(6):
        said += [assistant("", (f"c{at}", "read_file")), tool(f"c{at}", "some line\n" * 200)]
    keep = {"tool_result_keep_first": 1, "tool_result_keep_last": 2, "tool_result_masking": "exact"}
    fates, rows = _fates(said, **keep)
    masked = [row.id for row in rows.values() if row.fate is Fate.MASKED]
    assert masked == ["m5", "m7", "m9"]
    row = rows["m5"]
    assert fates.items["m4:call:0"] == ItemFate(False, f"{size_of(row)} tokens · masked")


def test_turns_that_left_are_dimmed_under_a_rule_that_counts_them() -> None:
    fates, rows = _fates(_TALK, max_history_tokens=300, preserve_recent_turns=1)
    gone = [row for row in rows.values() if row.fate is Fate.OMITTED]
    boundary = rows[fates.boundary]
    assert rows["m1"].fate is Fate.SENT, "the task stays longest, with its answer"
    assert rows["m5"].fate is Fate.OMITTED
    assert fates.items["m5"] == ItemFate(True, f"{rows['m5'].tokens_before} → 0 tokens · omitted")
    assert "m1" not in fates.items
    assert rows[fates.boundary].role == "user"
    before = [row for row in gone if row.index < boundary.index]
    assert fates.rule == f"{boundary.index - 1} earlier messages: {len(before)} omitted, 2 still sent"


def test_what_the_summary_stands_for_is_told_apart_from_what_was_omitted() -> None:
    summary = Summary("- they asked twice", 8, 1)
    fates, rows = _fates(_TALK, max_history_tokens=300, preserve_recent_turns=1, summary=summary)
    boundary = rows[fates.boundary].index
    told = sum(row.fate is Fate.SUMMARIZED for row in rows.values())
    omitted = sum(row.fate is Fate.OMITTED for row in rows.values() if row.index < boundary)
    assert told == 7
    assert omitted
    assert (
        fates.rule == f"{boundary - 1} earlier messages: {told} summarized, {omitted} omitted, 1 still sent"
    )
    assert fates.items["m5"].note.endswith(" tokens · summarized")


def test_a_rule_of_one_kind_is_short() -> None:
    messages = [
        Message("user", "a", id="m1"),
        Message("assistant", "b", id="m2"),
        Message("user", "c", id="m3"),
    ]
    plain = _report([Message.from_dict(SYSTEM), *messages])
    system = ("", "system", Fate.SENT, 5, 5)
    gone = [("m1", "user", Fate.OMITTED, 9, 0), ("m2", "assistant", Fate.OMITTED, 8, 0)]
    fates = item_fates(messages, _with_fates(plain, system, *gone, ("m3", "user", Fate.SENT, 4, 4)))
    assert (fates.boundary, fates.rule) == ("m3", "2 earlier messages omitted")
    alone = [messages[0], messages[2]]
    fates = item_fates(alone, _with_fates(plain, system, gone[0], ("m3", "user", Fate.SENT, 4, 4)))
    assert (fates.boundary, fates.rule) == ("m3", "1 earlier message omitted")


def test_what_the_person_excluded_says_so() -> None:
    said = [SYSTEM, *long_conversation(turns=2)[1:], user("now?")]
    fates, rows = _fates(said, pins=Pins(excluded=frozenset({3, 5})))
    assert fates.items["m2:call:0"] == ItemFate(False, f"{size_of(rows['m3'])} tokens · excluded")
    assert fates.items["m5"] == ItemFate(True, f"{size_of(rows['m5'])} tokens · excluded")
    assert fates.boundary == "", "nothing left by itself"


def test_all_that_shows_a_reply_has_its_fate() -> None:
    reply = Message("assistant", "42", extras={"reasoning_content": "hm"}, id="m2")
    messages = [Message("user", "a", id="m1"), reply, Message("user", "c", id="m3")]
    plain = _report([Message.from_dict(SYSTEM), *messages])
    gone = [("m1", "user", Fate.SUMMARIZED, 9, 0), ("m2", "assistant", Fate.SUMMARIZED, 1200, 0)]
    drawn = _with_fates(plain, ("", "system", Fate.SENT, 5, 5), *gone, ("m3", "user", Fate.SENT, 4, 4))
    fates = item_fates(messages, drawn)
    fate = ItemFate(True, "1,200 → 0 tokens · summarized")
    assert fates.items[reasoning_id("m2")] == fates.items["m2"] == fate


def test_long_arguments_that_were_cut_are_told_at_the_call() -> None:
    written = assistant("I write it.", ("c", "write_file"))
    written["tool_calls"][0]["function"]["arguments"] = '{"path": "a", "text": "' + "long line " * 4000 + '"}'
    said = [SYSTEM, user("write"), written, tool("c", "done"), assistant("Written."), user("and now?")]
    fates, rows = _fates(said, max_context_tokens=4000, reserved_output_tokens=500)
    if rows["m2"].layer != "arguments":
        pytest.fail(f"the arguments were to be cut: {rows['m2']}")
    assert fates.items["m2:call:0"].note == f"{size_of(rows['m3'])} tokens · arguments shortened"
    assert "m2" not in fates.items, "what was said with it is sent"


def test_messages_newer_than_the_report_or_of_another_branch_have_no_fate() -> None:
    messages = _messages(long_conversation(turns=12))
    report = _report(messages[:9], max_history_tokens=500, preserve_recent_turns=1)
    fates = item_fates(messages[1:], report)
    known = {message.id for message in messages[:9]}
    assert fates.items
    assert {item_id.partition(":")[0] for item_id in fates.items} <= known
    others = [replace(message, id=f"x{message.id}") for message in messages[1:]]
    assert dict(item_fates(others, report).items) == {}
    assert item_fates([], report).boundary == ""


def test_nothing_is_drawn_of_a_long_session_before_it_is_asked_for() -> None:
    messages = _messages(long_conversation(turns=2000, words=2))
    report = _report(messages, max_history_tokens=2000)
    drawn: list[int] = []
    rows = report.rows

    def draw(place: int) -> Row:
        drawn.append(place)
        return rows[place]

    fates = item_fates(messages[1:], replace(report, rows=Rows(len(rows), draw)))
    assert fates.rule.startswith("7,")
    assert len(drawn) < 500
    assert fates.items["m5"].dimmed


_PINS = st.builds(
    Pins, st.frozensets(st.integers(1, 30), max_size=3), st.frozensets(st.integers(1, 30), max_size=3)
)


@settings(max_examples=60, deadline=None)
@given(
    conversations() | torn_conversations(),
    st.integers(1500, 12_000),
    st.sampled_from(["priority", "oldest-first"]),
    _PINS,
    st.none() | st.integers(1, 20),
)
def test_every_message_not_sent_whole_is_noted_with_the_figures_of_its_row(
    said: list[dict[str, Any]], window: int, strategy: str, pins: Pins, through: int | None
) -> None:
    if not said or said[0]["role"] != "system":
        said = [SYSTEM, *said]
    messages = _messages(said)
    summary = Summary("- something was said", through, 1) if through else None
    report = _report(
        messages, max_context_tokens=window, reserved_output_tokens=200, max_history_tokens=window // 3,
        trim_strategy=strategy, preserve_recent_turns=1, pins=pins, summary=summary,
    )  # fmt: skip
    branch = messages[1:]
    fates = item_fates(branch, report)
    items = {item.id for item in items_of(branch)}
    shown = {item_id: fates.items[item_id] for item_id in fates.items if item_id in items}
    expected: dict[str, ItemFate] = {}
    for row, message in zip(report.rows[1:], branch, strict=True):
        is_tool, tokens = message.role == "tool", f"{size_of(row)} tokens"
        if row.fate is Fate.SENT and not is_tool:
            continue
        note = tokens if row.fate is Fate.SENT else f"{tokens} · {row.fate.word}"
        of_message = [item_showing(branch, message.id)[0]]
        if message.role == "assistant":
            calls = [call_id(message.id, index) for index in range(len(message.tool_calls))]
            of_message = [message.id, *calls]
        for item_id in of_message:
            expected.setdefault(item_id, ItemFate(not row.tokens_after, note))
            if is_tool:
                suffix = " · arguments shortened" if "arguments" in expected[item_id].note else ""
                expected[item_id] = ItemFate(not row.tokens_after, note + suffix)
        if row.layer == "arguments":
            expected.pop(message.id, None)
            expected |= {one: ItemFate(False, f"{note} · arguments shortened") for one in of_message[1:]}
    assert shown == {item_id: fate for item_id, fate in expected.items() if item_id in items}
    _check_boundary(fates, branch, report)


def _check_boundary(fates: Fates, branch: Sequence[Message], report: PromptReport) -> None:
    """No turn that is told of after the boundary has left, and the rule adds up."""
    rows = report.rows[1:]
    ends = [at for at in range(len(rows)) if at + 1 == len(rows) or opens_turn(branch, at + 1)]
    left = [at for at in ends if rows[at].fate in _GONE]
    if not fates.boundary:
        assert not left or all(not row.tokens_after for row in rows[left[-1] + 1 :])
        return
    place = next(at for at, message in enumerate(branch) if message.id == fates.boundary.partition(":")[0])
    assert rows[place].tokens_after
    assert left
    assert left[-1] < place
    assert all(not row.tokens_after for row in rows[left[-1] + 1 : place])
    words = fates.rule.replace(",", "").replace(":", "").split()
    assert int(words[0]) == place
    for fate in _GONE:
        count = sum(row.fate is fate for row in rows[:place])
        assert not count or fate.word in words
        if count and ":" in fates.rule:
            assert f"{count:,} {fate.word}" in fates.rule


class _Counted(PartlyRead):
    """Counts the messages that are asked for."""

    asked = 0

    def __getitem__(self, at: Any) -> Any:
        _Counted.asked += 1
        return super().__getitem__(at)


def test_places_of_a_branch_that_is_read_upwards_are_found_once() -> None:
    places, whole = MessageIndices(), [Message("user", "", id=f"m{at}") for at in range(400)]
    for unread in range(380, -1, -20):
        whole.append(Message("user", "", id=f"m{len(whole)}"))
        part = _Counted(unread, {0: whole[0]} if unread else {}, whole[unread:])
        assert places.of(part) == {message.id: place for place, message in part.read_parts()}
    assert places.of(whole) == {message.id: place for place, message in enumerate(whole)}
    assert _Counted.asked < 2 * len(whole)


def test_places_are_those_of_the_branch_after_every_move() -> None:
    chance, places = random.Random(5), MessageIndices()
    branch: list[Message] = []
    for step in range(60):
        branch = branch[: chance.randrange(len(branch) + 1)] if chance.random() < 0.3 else branch
        branch = branch + [Message("user", "", id=f"m{step}-{at}") for at in range(chance.randrange(4))]
        assert places.of(branch) == {message.id: place for place, message in enumerate(branch)}
    assert places.of([]) == {}
