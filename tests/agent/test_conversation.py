"""A long answer is stored off the event loop; whatever happens meanwhile, it is settled once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from rolling_chat.agent import conversation
from rolling_chat.events import Outcome, ReplyEnded
from rolling_chat.messages import Ending, Message
from rolling_chat.sessions.records import StoreError
from rolling_chat.sessions.sqlite.store import SqliteStore
from tests.support.agent import Opened, assert_well_formed, call, calls, collect, of_kind, says
from tests.support.patience import PATIENCE_SECONDS

ANSWER = "An answer that counts as long."


@pytest.fixture(autouse=True)
def any_answer_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "_LONG_REPLY", 1)


class SlowDisk:
    """Holds back the sealing of replies, once one is `asked`, until `go` is set."""

    def __init__(self) -> None:
        self.asked, self.go = asyncio.Event(), threading.Event()
        self._loop = asyncio.get_running_loop()
        self._seal = SqliteStore.seal_reply

    def bind(self) -> Callable[..., Message]:
        """What stands in for the store's method."""

        def seal_reply(*given: Any) -> Message:
            self._loop.call_soon_threadsafe(self.asked.set)
            assert self.go.wait(PATIENCE_SECONDS)
            return self._seal(*given)

        return seal_reply


@pytest.fixture
async def slow(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SlowDisk]:
    disk = SlowDisk()
    monkeypatch.setattr(SqliteStore, "seal_reply", disk.bind())
    yield disk
    disk.go.set()


async def test_the_loop_goes_on_while_it_is_stored(opened: Opened, slow: SlowDisk) -> None:
    chat, runtime, _ = opened(says(ANSWER))
    turn = asyncio.create_task(collect(chat.send("go")))
    await slow.asked.wait()  # told by way of the loop: it is not held up
    slow.go.set()
    events = await turn
    assert events[-1].outcome is Outcome.DONE
    assert chat.session.messages[-1].text == ANSWER
    assert_well_formed(chat, runtime)


async def test_who_stops_it_meanwhile_keeps_the_whole_answer_once(opened: Opened, slow: SlowDisk) -> None:
    chat, runtime, _ = opened(says(ANSWER), says("And on."))
    turn = asyncio.create_task(collect(chat.send("go")))
    await slow.asked.wait()
    chat.stop()
    slow.go.set()
    events = await turn
    assert events[-1].outcome is Outcome.CANCELLED
    (ended,) = of_kind(events, ReplyEnded)
    assert (ended.message.text, ended.message.ending) == (ANSWER, Ending.COMPLETE)
    assert [message.text for message in runtime.store.branch(chat.session.info.id)] == ["go", ANSWER]
    assert (await collect(chat.send("on")))[-1].outcome is Outcome.DONE
    assert_well_formed(chat, runtime)


async def test_calls_of_an_answer_that_was_stopped_meanwhile_are_answered(
    opened: Opened, slow: SlowDisk
) -> None:
    chat, runtime, _ = opened(calls(call("list_files"), text=ANSWER))
    turn = asyncio.create_task(collect(chat.send("go")))
    await slow.asked.wait()
    chat.stop()
    slow.go.set()
    await turn
    assert [message.role for message in chat.session.messages] == ["user", "assistant", "tool"]
    assert_well_formed(chat, runtime)


async def test_a_store_that_fails_meanwhile_ends_the_turn_in_one_line(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, runtime, _ = opened(says(ANSWER), says("And on."))
    seal, refused = SqliteStore.seal_reply, []

    def full_once(*given: Any) -> Message:
        if not refused:
            refused.append(given)
            raise StoreError("The disk is full.")
        return seal(*given)

    monkeypatch.setattr(SqliteStore, "seal_reply", full_once)
    ended = (await collect(chat.send("go")))[-1]
    assert (ended.outcome, ended.error) == (Outcome.FAILED, "The disk is full.")
    assert (chat.session.messages[-1].text, chat.session.messages[-1].ending) == (ANSWER, Ending.FAILED)
    assert (await collect(chat.send("on")))[-1].outcome is Outcome.DONE
    assert_well_formed(chat, runtime)


async def test_without_a_thread_it_is_stored_all_the_same(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, runtime, _ = opened(says(ANSWER))

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        ended = (await collect(chat.send("go")))[-1]
    assert ended.outcome is Outcome.DONE
    assert [message.text for message in runtime.store.branch(chat.session.info.id)] == ["go", ANSWER]
