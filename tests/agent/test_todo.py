"""The to-do list is that of the newest call on the branch, wherever the conversation goes."""

from __future__ import annotations

import json

import pytest

from rolling_chat.agent import Chat, conversation, todo_tracking
from rolling_chat.context.summary_text import TODO_HEAD
from rolling_chat.messages import Message
from rolling_chat.todo_list import list_of
from tests.support.agent import Opened, Script, call, calls, collect, says


def setting(*items: str, id: str = "c1") -> Script:
    return calls(call("todo", json.dumps({"items": list(items)}), id))


def shown(chat: Chat) -> str:
    todo = chat.session.todo
    return todo.text if todo is not None else ""


async def test_the_list_goes_back_and_forth_with_the_conversation(opened: Opened) -> None:
    chat, runtime, _ = opened(
        setting("[>] a", "[ ] b"), says("one"), setting("[x] a", "[>] b"), says("two"), says("three")
    )
    assert shown(chat) == ""
    await collect(chat.send("first"))
    assert shown(chat) == "[>] a\n[ ] b"
    await collect(chat.send("second"))
    assert shown(chat) == "[x] a\n[>] b"
    again = Chat.open(runtime, session=chat.session.info)
    assert shown(again) == "[x] a\n[>] b"
    again.session.history.undo()
    assert shown(again) == "[>] a\n[ ] b"
    again.session.history.undo()
    assert shown(again) == ""
    again.session.history.redo()
    assert shown(again) == "[>] a\n[ ] b"


async def test_a_list_that_is_done_goes_with_the_next_message(opened: Opened) -> None:
    chat, _, _ = opened(setting("[x] a"), says("done"), says("more"))
    await collect(chat.send("first"))
    assert shown(chat) == "[x] a"
    await collect(chat.send("second"))
    assert shown(chat) == ""


async def test_a_list_that_is_none_changes_nothing_and_an_empty_one_ends_it(opened: Opened) -> None:
    chat, _, _ = opened(
        setting("a"), calls(call("todo", '{"items": 5}', "c2")), setting(id="c3"), says("done")
    )
    seen = [shown(chat) async for _ in chat.send("first")]
    assert list(dict.fromkeys(seen)) == ["", "[ ] a"]
    assert shown(chat) == ""
    results = [message.text for message in chat.session.messages if message.role == "tool"]
    assert results == ["[0 of 1 done]", "The argument 'items' must be a list of texts.", "[0 of 0 done]"]


async def test_the_model_is_told_its_list_when_the_call_has_left_the_prompt(opened: Opened) -> None:
    chat, runtime, provider = opened(
        setting("[x] a", "[>] b"), says("ok"), says("words " * 1_200), says("words " * 1_200), says("done"),
        window=4_000, tools=("todo", "read_file"),
    )  # fmt: skip
    chat.session.overrides.set_rolling(on=True)
    for text in ("first", "second", "third", "fourth"):
        await collect(chat.send(text))
    answering = [request.messages for request in provider.requests if request.messages[0].role == "system"]
    sent = answering[-1]  # and no request for a summary
    assert not any(message.tool_calls for message in sent)
    assert f"{TODO_HEAD}\n[x] a\n[>] b" in sent[0].text
    assert shown(chat) == "[x] a\n[>] b"
    assert runtime.store.branch(chat.session.info.id)[1].tool_calls


@pytest.mark.parametrize("last", ["[>] a", "[x] a"])
async def test_it_is_found_far_above_and_each_message_is_looked_at_once(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    chat, runtime, _ = opened(setting(last), says("set"))
    await collect(chat.send("plan"))
    session = chat.session.info.id
    for turn in range(40):
        runtime.store.append(session, Message("user", f"question {turn}"))
        runtime.store.append(session, Message("assistant", "", tool_calls=(call("list_files"),)))
        runtime.store.append(session, Message("tool", "none", tool_call_id="c1"))
        runtime.store.append(session, Message("assistant", f"answer {turn}"))
    for name, count in (("_FIRST", 20), ("_SLICE", 8), ("_AROUND", 1)):
        monkeypatch.setattr(conversation, name, count)
    looked: list[Message] = []
    monkeypatch.setattr(todo_tracking, "list_of", lambda one: (looked.append(one), list_of(one))[1])
    again = Chat.open(runtime, session=runtime.store.session(session))
    while not again.session.conversation.is_whole:
        assert shown(again) == ""
        await again.session.read_up(whole=False)
    assert shown(again) == ("" if last == "[x] a" else last)
    assert len(looked) <= 2 * 41
