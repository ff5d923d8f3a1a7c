"""A stored conversation becomes items."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rolling_chat.agent import PinScope
from rolling_chat.commands.marks import Mark
from rolling_chat.messages import Ending, Message, ToolCall, pack_contents
from rolling_chat.tui.state.items import (
    Kind,
    Status,
    item_marks,
    item_showing,
    items_of,
    result_note,
)


def _call(name: str, arguments: str, id: str = "c1") -> ToolCall:
    return ToolCall(id, name, arguments)


def test_the_system_message_is_not_shown() -> None:
    assert items_of([Message("system", "secret"), Message("user", "hello", id="u")])[0].text == "hello"


def test_a_tool_call_and_its_result_are_one_item() -> None:
    reply = Message("assistant", "I look.", tool_calls=(_call("read_file", '{"path": "a.py"}'),), id="r")
    result = Message("tool", "x = 1", tool_call_id="c1", id="t")
    said, tool = items_of([reply, result])
    assert (said.kind, said.text) == (Kind.ASSISTANT, "I look.")
    assert (tool.kind, tool.text, tool.status, tool.detail) == (
        Kind.TOOL,
        "read_file a.py",
        Status.DONE,
        "x = 1",
    )


@pytest.mark.parametrize(
    ("result", "ending", "outcome"),
    [
        ("ok\n[exit code 0]", Ending.COMPLETE, ""),
        ("boom\n[exit code 2]", Ending.COMPLETE, "exit 2"),
        ("boom\n[exit code 2]\n[it left processes running]", Ending.COMPLETE, "exit 2"),
        ("[exit code 9]\nline\nline\n[exit code 0]", Ending.COMPLETE, ""),
        ("[killed by signal SIGTERM]", Ending.COMPLETE, "killed by signal SIGTERM"),
        ("late\n[killed: not done after 3 seconds]", Ending.FAILED, "killed: not done after 3 seconds"),
    ],
)
def test_a_command_that_did_not_succeed_says_how_it_ended(result: str, ending: Ending, outcome: str) -> None:
    reply = Message("assistant", tool_calls=(_call("run_command", '{"command": "make"}'),), id="r")
    ended = Message("tool", result, tool_call_id="c1", name="run_command", id="t", ending=ending)
    assert items_of([reply, ended])[-1].outcome == outcome


def test_a_read_that_failed_gives_the_reason() -> None:
    reply = Message("assistant", tool_calls=(_call("read_file", '{"path": "a"}'),), id="r")
    reason = "There is no 'a' in the working folder."
    failed = Message("tool", reason, tool_call_id="c1", name="read_file", id="t", ending=Ending.FAILED)
    assert items_of([reply, failed])[-1].outcome == reason.removesuffix(".")


def test_results_go_to_calls_by_order_for_ids_repeat() -> None:
    both = (_call("read_file", '{"path": "a"}', "same"), _call("read_file", '{"path": "b"}', "same"))
    messages = [
        Message("assistant", tool_calls=both, id="r"),
        Message("tool", "of a", tool_call_id="same", id="t1"),
        Message("tool", "of b", tool_call_id="same", id="t2"),
    ]
    assert [(item.text, item.detail) for item in items_of(messages)] == [
        ("read_file a", "of a"),
        ("read_file b", "of b"),
    ]


def test_an_item_shows_what_its_message_holds_packed_or_not() -> None:
    call = _call("read_file", '{"path": "a.py"}')
    messages = [
        Message("user", "a long question " * 20, id="u"),
        Message("assistant", "a long answer " * 20, tool_calls=(call,), id="r"),
        Message("tool", "a long result " * 20, tool_call_id="c1", id="t"),
        Message("user", ({"type": "text", "text": "a part"}, {"type": "image_url"}), id="v"),
    ]
    items = items_of(messages)
    texts = [(item.text, item.detail) for item in items]
    assert [item.text for item in items] == [messages[0].text, messages[1].text, "read_file a.py", "a part"]
    pack_contents(messages)
    assert [(item.text, item.detail) for item in items] == texts
    assert items_of(messages) == items
    assert replace(items[0], status=Status.LIVE).text == messages[0].text


def test_a_call_that_was_never_answered_stays_open() -> None:
    reply = Message("assistant", tool_calls=(_call("read_file", "{}"),), id="r")
    assert items_of([reply])[0].status is Status.FORMING


def test_a_result_without_a_call_is_shown_all_the_same() -> None:
    (item,) = items_of([Message("tool", "lost", tool_call_id="x", id="t", name="read_file")])
    assert (item.text, item.detail) == ("read_file", "lost")


@pytest.mark.parametrize(
    ("ending", "status"),
    [(Ending.FAILED, Status.FAILED), (Ending.CANCELLED, Status.CANCELLED), (Ending.LENGTH, Status.CUT)],
)
def test_how_a_reply_ended_is_kept(ending: Ending, status: Status) -> None:
    assert items_of([Message("assistant", "half", ending=ending, id="r")])[0].status is status


def test_thinking_comes_before_the_answer() -> None:
    reply = Message("assistant", "42", extras={"reasoning_content": "let me see"}, id="r")
    assert [(item.kind, item.text) for item in items_of([reply])] == [
        (Kind.REASONING, "let me see"),
        (Kind.ASSISTANT, "42"),
    ]


@pytest.mark.parametrize(
    ("message", "tokens", "note"),
    [
        (
            Message("tool", "x\n[truncated: kept first ~8000 of ~52000 tokens (head)]"),
            0,
            "52k → 8.0k tokens · head",
        ),
        (
            Message("tool", "[truncated: kept first+last ~800 of ~9000 tokens (both)]"),
            40,
            "9.0k → 800 tokens · both",
        ),
        (Message("tool", "x" * 400), 0, "~100 tokens"),
        (Message("tool", "x"), 120, "120 tokens"),
    ],
)
def test_the_note_says_what_became_of_the_result(message: Message, tokens: int, note: str) -> None:
    assert result_note(message, tokens) == note


def test_a_message_is_found_by_the_item_that_shows_it() -> None:
    called = (ToolCall("a", "f", "{}"), ToolCall("a", "g", "{}"))
    messages = [
        Message("system", "be kind", id="m1"),
        Message("user", "do it", id="m2"),
        Message("assistant", "", tool_calls=called, id="m3"),
        Message("tool", "one", tool_call_id="a", id="m4"),
        Message("tool", "two", tool_call_id="a", id="m5"),
        Message("assistant", "done", extras={"reasoning_content": "hm"}, id="m6"),
        Message("tool", "an orphan", id="m7"),
    ]
    items = {item.id: item for item in items_of(messages)}
    places = {message.id: item_showing(messages, message.id) for message in messages}
    assert places["m1"] == ("m2", False)
    assert places["m2"] == ("m2", False)
    assert items[places["m3"][0]].kind is Kind.TOOL
    assert [(items[places[name][0]].detail, places[name][1]) for name in ("m4", "m5", "m7")] == [
        ("one", True), ("two", True), ("an orphan", True),
    ]  # fmt: skip
    assert places["m6"] == ("m6", False)
    assert item_showing(messages, "m99") == ("", False)


def test_a_call_has_the_mark_of_its_result_and_a_reply_its_own() -> None:
    both = (_call("read_file", "{}", "a"), _call("list_files", "{}", "b"))
    messages = [
        Message("user", "look", id="u"),
        Message("assistant", tool_calls=both, id="r"),
        Message("tool", "of a", tool_call_id="a", id="t1"),
        Message("tool", "of b", tool_call_id="b", id="t2"),
        Message("assistant", "seen", id="s"),
    ]
    held = PinScope(frozenset({"t1"}), frozenset({"u", "r"}), frozenset({"t2", "s"}))
    marks = item_marks(messages, held)
    assert {item.id: marks.get(item.id) for item in items_of(messages)} == {
        "u": Mark.ALONG,
        "r:call:0": Mark.PINNED,
        "r:call:1": Mark.EXCLUDED,
        "s": Mark.EXCLUDED,
    }
    assert item_marks(messages, PinScope()) == {}
