"""A store across a network: the event loop never waits for it, and the session never differs from it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.agent import Chat, Runtime
from rolling_chat.events import Outcome, ReplyEnded, Steered, TextAdded, ToolEnded, TurnStarted
from rolling_chat.messages import Ending
from rolling_chat.sessions.sqlite.store import SqliteStore
from rolling_chat.settings.schema import AgentSettings, Settings
from tests.support.agent import (
    Gate,
    Opened,
    ScriptedProvider,
    assert_well_formed,
    call,
    calls,
    collect,
    make_runtime,
    of_kind,
    says,
)
from tests.support.far_store import FarStore

WRITE = call("write_file", '{"path": "a.txt", "text": "one"}', "c3")


@pytest.fixture
def far(tmp_path: Path) -> Iterator[dict[Chat, FarStore]]:
    """The stores of the chats that `opened` has opened."""
    stores: dict[Chat, FarStore] = {}
    yield stores
    for store in stores.values():
        store.as_store.close()


@pytest.fixture
def opened(tmp_path: Path, far: dict[Chat, FarStore]) -> Opened:
    """Opens a chat over a far store, in a thread as the program does; agent settings by keyword."""

    def open_chat(*scripts: Any, **agent: Any) -> tuple[Chat, Runtime, ScriptedProvider]:
        provider = ScriptedProvider(*scripts)
        runtime = make_runtime(tmp_path, provider, settings=Settings(agent=AgentSettings(**agent)))
        store = FarStore(runtime.store)
        runtime = replace(runtime, store=store.as_store)
        chat = Chat.open(runtime)
        store.on_loop.clear()
        far[chat] = store
        return chat, runtime, provider

    return open_chat


async def test_a_turn_calls_its_store_off_the_loop(opened: Opened, far: dict[Chat, FarStore]) -> None:
    gate = Gate()
    chat, runtime, _ = opened(
        calls(call("list_files"), call("list_files", '{"path": "."}', "c2"), text="Let me see."),
        calls(WRITE),
        calls(call("task", '{"prompt": "count"}', "c4")),
        says("Three."),
        [gate, *says("So it is.")],
        approvals="edits",
    )
    turn = asyncio.create_task(collect(chat.send("What is here?")))
    await gate.reached.wait()
    chat.waiting.add("and there?")
    gate.opened.set()
    events = await turn
    assert events[-1].outcome is Outcome.DONE
    assert far[chat].on_loop == []
    assert {"append", "begin_reply", "grow_reply", "seal_reply", "log_request", "finish_request"} <= set(
        far[chat].off_loop
    )
    assert_well_formed(chat, runtime)


async def test_what_is_told_is_stored(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(call("list_files"), text="Let me see."), says("So it is."))
    async for event in chat.send("go"):
        stored = runtime.store.branch(chat.session.info.id)
        match event:
            case TurnStarted(message) | Steered(message) | ToolEnded(message=message) | ReplyEnded(message):
                assert stored[-1] == message
            case TextAdded(reply_id, text):
                assert stored[-1].id == reply_id
                assert text in stored[-1].text
            case _:
                pass


@pytest.mark.parametrize("method", ["append", "begin_reply", "grow_reply", "seal_reply", "log_request"])
async def test_a_stop_while_something_is_stored_leaves_session_and_store_alike(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, far: dict[Chat, FarStore], method: str
) -> None:
    chat, runtime, _ = opened(calls(call("list_files"), text="Let me see."), says("So it is."))
    loop, write = asyncio.get_running_loop(), getattr(SqliteStore, method)
    stops: list[str] = []

    def stopped_meanwhile(*given: Any, **named: Any) -> Any:
        if chat.busy and len(stops) < 2:
            stops.append(method)
            asyncio.run_coroutine_threadsafe(_stop(chat), loop).result()
        return write(*given, **named)

    monkeypatch.setattr(SqliteStore, method, stopped_meanwhile)
    events = await collect(chat.send("go"))
    assert events[-1].outcome is Outcome.CANCELLED
    assert far[chat].on_loop == []
    assert_well_formed(chat, runtime)
    shown = [event.message.id for event in of_kind(events, ToolEnded) + of_kind(events, ReplyEnded)]
    assert sorted(shown) == sorted(message.id for message in chat.session.messages[1:])
    monkeypatch.undo()
    assert (await collect(chat.send("on")))[-1].outcome is Outcome.DONE
    assert_well_formed(chat, runtime)


async def _stop(chat: Chat) -> None:
    chat.stop()


async def test_a_stop_in_a_reply_seals_it_off_the_loop(opened: Opened, far: dict[Chat, FarStore]) -> None:
    gate = Gate()
    said = says("Half of it")
    chat, runtime, _ = opened([*said[:-1], gate, said[-1]])
    turn = asyncio.create_task(collect(chat.send("go")))
    await gate.reached.wait()
    chat.stop()
    assert (await turn)[-1].outcome is Outcome.CANCELLED
    last = chat.session.messages[-1]
    assert last.text
    assert "Half of it".startswith(last.text)
    assert last.ending is Ending.CANCELLED
    assert far[chat].on_loop == []
    assert_well_formed(chat, runtime)


async def test_another_session_is_opened_off_the_loop_and_takes_no_message_of_this_one(
    opened: Opened, far: dict[Chat, FarStore]
) -> None:
    chat, runtime, _ = opened(says("One."), says("Two."))
    await collect(chat.send("first"))
    before = chat.session
    await chat.enter(chat.next.copy)
    await chat.enter(lambda: chat.next.saved(before.info.id))
    await chat.enter(chat.next.new)
    assert far[chat].on_loop == []
    assert chat.session.info.id != before.info.id
    await collect(chat.send("second"))
    assert [message.text for message in runtime.store.branch(before.info.id)] == ["first", "One."]


async def test_it_goes_back_and_forth_off_the_loop(opened: Opened, far: dict[Chat, FarStore]) -> None:
    chat, runtime, _ = opened(says("One."), says("Two."))
    await collect(chat.send("first"))
    await collect(chat.send("second"))
    history = chat.session.history
    history.make_way()
    assert (await chat.apart(history.undo)).text == "second"
    await chat.apart(history.redo)
    assert [message.text for message in chat.session.messages] == ["first", "One.", "second", "Two."]
    assert far[chat].on_loop == []
    assert_well_formed(chat, runtime)


async def test_what_another_writes_is_read_off_the_loop(
    opened: Opened, far: dict[Chat, FarStore], tmp_path: Path
) -> None:
    chat, *_ = opened(says("One."))
    await collect(chat.send("first"))
    follower, *_ = opened(says("Never."))
    await follower.enter(lambda: follower.next.saved(chat.session.info.id))
    assert follower.session.holder
    await collect(chat.send("second"))
    assert await follower.apart(follower.session.refresh)
    assert follower.session.messages[-1].role == "assistant"
    assert far[follower].on_loop == []
