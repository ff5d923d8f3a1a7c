from __future__ import annotations

import json
from typing import Any

import pytest

from rolling_chat.messages import Message, ToolCall
from rolling_chat.todo_list import MAX_ITEMS, list_of, list_of_call, parse_items


@pytest.mark.parametrize(
    "value",
    [
        ["[x] a", "[>] b", "[ ] c"],
        ["- [X] a", "* [~]  b", "c"],
        "[x] a\n[>] b\n\nc\n",
        [{"text": "a", "state": "done"}, {"content": "b", "status": "in progress"}, {"task": "c"}],
        [{"text": "a", "state": "[x]"}, {"text": "b", "state": "doing"}, "c"],
    ],
)
def test_a_list_is_read_as_models_write_it(value: Any) -> None:
    todo = parse_items(value)
    assert todo.text == "[x] a\n[>] b\n[ ] c"
    assert (todo.done, todo.next_index, todo.is_done) == (1, 1, False)


@pytest.mark.parametrize(
    "value",
    [None, 5, [5], [""], ["[x]"], [{}], [{"text": "a", "state": "?"}], [["a"]], ["a"] * (MAX_ITEMS + 1)],
)
def test_what_is_no_list_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^(?:must|has)"):
        parse_items(value)


def test_an_item_is_one_short_line() -> None:
    todo = parse_items(["a\nb\x1b[2J\u202e" + "x" * 5_000])
    assert "\n" not in todo.text
    assert "\x1b" not in todo.text
    assert len(todo.text) < 210


def test_the_last_list_of_a_message_counts_and_other_calls_set_none() -> None:
    calls = [
        ToolCall("a", "todo", json.dumps({"items": ["one"]})),
        ToolCall("b", "todo", json.dumps({"items": ["two"]})),
        ToolCall("c", "todo", "no json"),
        ToolCall("d", "read_file", json.dumps({"items": ["three"]})),
    ]
    found = list_of(Message("assistant", tool_calls=tuple(calls)))
    assert found is not None
    assert found.text == "[ ] two"
    assert [list_of_call(call) is None for call in calls] == [False, False, True, True]
