"""The model's notes belong to the branch, are kept in the prompt, and the user has the last word on them."""

from __future__ import annotations

import json

import pytest

from rolling_chat.agent import Chat, ChatError, PinChange
from rolling_chat.agent.request.rebuild import rebuild_request
from rolling_chat.context.notice_contents import NOTES_HEAD
from tests.support.agent import Opened, Script, ScriptedProvider, call, calls, collect, says

TOOLS = ("note", "recall", "read_file")


def noting(text: str, *, replaces: str = "", id: str = "c1") -> Script:
    return calls(call("note", json.dumps({"text": text, "replaces": replaces}), id))


def texts(chat: Chat) -> list[str]:
    return [note.text for note in chat.session.notes.notes]


def systems(provider: ScriptedProvider) -> list[str]:
    """The system messages of all requests for an answer."""
    sent = [request.messages[0] for request in provider.requests]
    return [one.text for one in sent if one.role == "system"]


async def test_notes_go_back_and_forth_with_the_conversation(opened: Opened) -> None:
    chat, runtime, _ = opened(
        noting("The port is 8080."), says("one"), noting("The port is 9090.", replaces="r2"), says("two"),
        tools=TOOLS,
    )  # fmt: skip
    chat.session.overrides.set_rolling(on=True)
    await collect(chat.send("first"))
    assert texts(chat) == ["The port is 8080."]
    await collect(chat.send("second"))
    assert texts(chat) == ["The port is 9090."]
    again = Chat.open(runtime, session=chat.session.info)
    assert texts(again) == ["The port is 9090."]
    again.session.history.undo()
    assert texts(again) == ["The port is 8080."]
    again.session.history.undo()
    assert texts(again) == []
    again.session.history.redo()
    assert texts(again) == ["The port is 8080."]


async def test_the_note_is_told_when_its_call_has_left_and_in_a_fork_and_after_a_resume(
    opened: Opened,
) -> None:
    chat, runtime, provider = opened(
        says("go on"), noting("The port is 8080."), *[says("words " * 1_200)] * 4, says("done"),
        window=4_000, tools=TOOLS,
    )  # fmt: skip
    chat.session.overrides.set_rolling(on=True)
    for text in ("first", "second", "third", "fourth", "fifth"):
        await collect(chat.send(text))
    told = f"{NOTES_HEAD}\nr4: The port is 8080."
    assert told in systems(provider)[-1]
    assert chat.session.preview.report().notes > 0
    for record in runtime.store.requests(chat.session.info.id):
        assert rebuild_request(runtime.store, record).is_same
    chat.fork()
    await collect(chat.send("fifth"))
    assert told in systems(provider)[-1]
    again = Chat.open(runtime, session=chat.session.info)
    await collect(again.send("sixth"))
    assert told in systems(provider)[-1]
    assert texts(again) == ["The port is 8080."]


async def test_the_user_changes_and_removes_notes(opened: Opened) -> None:
    chat, runtime, provider = opened(
        noting("The port is 8080."), says("one"), noting("Ann decides."), says("two"),
        noting("The port is 1.", replaces="r2"), says("three"), tools=TOOLS,
    )  # fmt: skip
    chat.session.overrides.set_rolling(on=True)
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    chat.session.notes.change("r2", "The port is 9090.")
    chat.session.notes.remove("r6")
    assert texts(chat) == ["The port is 9090."]
    await collect(chat.send("third"))
    assert "r2 (changed by the user): The port is 9090.\nr6: removed by the user" in systems(provider)[-1]
    refused = [one for one in chat.session.messages if one.role == "tool"][-1]
    assert "The user changed r2" in refused.text
    assert texts(chat) == ["The port is 9090."]
    assert texts(Chat.open(runtime, session=chat.session.info)) == ["The port is 9090."]
    chat.fork()
    assert texts(chat) == ["The port is 9090."]


async def test_what_cannot_be_changed_is_said_in_a_line(opened: Opened) -> None:
    chat, _, _ = opened(noting("Ann decides."), says("one"), tools=TOOLS)
    chat.session.overrides.set_rolling(on=True)
    with pytest.raises(ChatError, match="there are none on this branch"):
        chat.session.notes.remove("r1")
    await collect(chat.send("first"))
    with pytest.raises(ChatError, match=r"There is no note 'r9'; the notes are r2\."):
        chat.session.notes.find("r9")
    with pytest.raises(ChatError, match="500 are the most"):
        chat.session.notes.change("r2", "a long text " * 300)
    with pytest.raises(ChatError, match="/notes delete r2"):
        chat.session.notes.change("r2", " \n ")
    assert texts(chat) == ["Ann decides."]


async def test_all_notes_together_stay_within_their_room(opened: Opened) -> None:
    made = [noting(f"fact {at}: " + "and so on " * 40, id=f"c{at}") for at in range(8)]
    chat, _, _ = opened(*made, says("done"), tools=TOOLS)
    chat.session.overrides.set_rolling(on=True)
    await collect(chat.send("note all of it"))
    notes = chat.session.notes
    assert notes.count(notes.notes) <= notes.max_tokens == 500
    refused = [one for one in chat.session.messages if one.text.startswith("Not noted: all notes together")]
    assert len(refused) == 8 - len(notes.notes) > 2


async def test_several_notes_of_one_reply_have_names_of_their_own(opened: Opened) -> None:
    both = [call("note", json.dumps({"text": text}), text) for text in ("Ann decides.", "Bob pays.")]
    chat, _, _ = opened(calls(*both), says("done"), tools=TOOLS)
    chat.session.overrides.set_rolling(on=True)
    await collect(chat.send("note both"))
    assert [note.key.name for note in chat.session.notes.notes] == ["r2", "r2.2"]
    results = [one.text.partition(";")[0] for one in chat.session.messages if one.role == "tool"]
    assert results == ["[noted as r2", "[noted as r2.2"]


async def test_the_tool_is_offered_with_rolling_on_from_the_first_request(opened: Opened) -> None:
    chat, _, provider = opened(says("one"), tools=TOOLS)
    await collect(chat.send("first"))
    chat.session.overrides.set_rolling(on=True)
    await collect(chat.send("second"))
    offered = [[tool["function"]["name"] for tool in request.tools] for request in provider.requests]
    assert [("note" in names, "recall" in names) for names in offered] == [(False, False), (True, True)]
    assert "Your context window rolls" not in systems(provider)[0]
    assert "Your context window rolls" in systems(provider)[1]
    assert "keep with note" in systems(provider)[1]


async def test_a_note_of_an_excluded_call_is_not_kept(opened: Opened) -> None:
    chat, _, _ = opened(noting("Ann decides."), says("one"), says("two"), tools=TOOLS)
    chat.session.overrides.set_rolling(on=True)
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    chat.session.pins.make(PinChange.EXCLUDE, "r2")
    assert texts(chat) == []
    chat.session.pins.make(PinChange.INCLUDE, "r2")
    assert texts(chat) == ["Ann decides."]
