"""Calls that only read run at once; their results keep the order of the calls."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from rolling_chat.agent import Chat
from rolling_chat.agent.turn.batching import batches
from rolling_chat.agent.turn.tool_calls import MAX_SIDE_BY_SIDE
from rolling_chat.events import Outcome, ToolEnded, ToolStarted
from rolling_chat.messages import Ending, JsonObject
from rolling_chat.tools import ToolContext, ToolResult
from rolling_chat.tools.read_file import ReadFile
from rolling_chat.tools.run_command import RunCommand
from tests.support.agent import (
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


class Reads:
    """Stands in for the running of tools: each waits until it is released, and notes what ran with it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[str] = []
        self.running: set[str] = set()
        self.most = 0
        self.released: dict[str, asyncio.Event] = {}
        self.began = asyncio.Condition()
        monkeypatch.setattr(ReadFile, "run", self.run)
        monkeypatch.setattr(RunCommand, "run", self.run)

    async def run(self, arguments: JsonObject, _: ToolContext) -> ToolResult:
        name = str(arguments.get("path") or arguments.get("command"))
        self.log.append(f"{name} begins")
        self.running.add(name)
        self.most = max(self.most, len(self.running))
        async with self.began:
            self.began.notify_all()
        try:
            await self.gate(name).wait()
        finally:
            self.running.discard(name)
        self.log.append(f"{name} ends")
        return ToolResult(f"what is in {name}")

    def gate(self, name: str) -> asyncio.Event:
        return self.released.setdefault(name, asyncio.Event())

    async def until(self, *names: str) -> None:
        async with self.began:
            await self.began.wait_for(lambda: self.running == set(names))


def reading(name: str) -> object:
    return call("read_file", f'{{"path": "{name}"}}', name)


async def test_reads_run_at_once_and_their_results_keep_the_order_of_the_calls(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Reads(monkeypatch)
    chat, runtime, provider = opened(calls(reading("a"), reading("b"), reading("c")), says("ok"))
    turn = asyncio.create_task(collect(chat.send("go")))
    await reads.until("a", "b", "c")
    for name in "cba":
        reads.gate(name).set()
    events = await turn
    assert [event.call.id for event in of_kind(events, ToolStarted)] == ["a", "b", "c"]
    assert [event.call.id for event in of_kind(events, ToolEnded)] == ["a", "b", "c"]
    assert [message.text for message in provider.requests[1].messages[-3:]] == [
        "what is in a", "what is in b", "what is in c",
    ]  # fmt: skip
    assert_well_formed(chat, runtime)


async def test_what_changes_something_runs_alone_after_what_was_called_before_it(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Reads(monkeypatch)
    command = call("run_command", '{"command": "make"}', "make")
    chat, runtime, _ = opened(
        calls(reading("a"), reading("b"), command, reading("c"), reading("d")), says("ok"), approvals="all"
    )
    for name in ("b", "make", "c", "d"):
        reads.gate(name).set()
    turn = asyncio.create_task(collect(chat.send("go")))
    await reads.until("a")
    reads.gate("a").set()
    await turn
    assert reads.log == [
        "a begins", "b begins", "b ends", "a ends", "make begins", "make ends",
        "c begins", "c ends", "d begins", "d ends",
    ]  # fmt: skip
    assert_well_formed(chat, runtime)


async def test_only_so_many_run_at_once(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Reads(monkeypatch)
    names = [f"f{number}" for number in range(2 * MAX_SIDE_BY_SIDE)]
    chat, runtime, _ = opened(calls(*map(reading, names)), says("ok"))
    turn = asyncio.create_task(collect(chat.send("go")))
    await reads.until(*names[:MAX_SIDE_BY_SIDE])
    for name in names:
        reads.gate(name).set()
    ended = of_kind(await turn, ToolEnded)
    assert [event.call.id for event in ended] == names
    assert reads.most == MAX_SIDE_BY_SIDE
    assert_well_formed(chat, runtime)


async def test_a_stop_ends_all_and_keeps_what_was_read(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Reads(monkeypatch)
    command = call("run_command", '{"command": "make"}', "make")
    names = "abcdefghi"
    assert len(names) == MAX_SIDE_BY_SIDE + 1
    chat, runtime, _ = opened(calls(*map(reading, names), command), says("ok"), approvals="all")
    turn = asyncio.create_task(collect(chat.send("go")))
    await reads.until(*names[:-1])
    reads.gate("b").set()
    await reads.until(*names.replace("b", ""))
    chat.stop()
    events = await turn
    assert events[-1].outcome is Outcome.CANCELLED
    assert not reads.running
    ended = {
        event.call.id: (event.message.ending, event.message.text) for event in of_kind(events, ToolEnded)
    }
    cancelled = "[cancelled while it ran; what it had done by then stays done]"
    assert ended == dict.fromkeys(names, (Ending.CANCELLED, cancelled)) | {
        "b": (Ending.COMPLETE, "what is in b"),
        "make": (Ending.CANCELLED, "[cancelled: not run]"),
    }
    assert_well_formed(chat, runtime)


async def test_one_that_breaks_spoils_no_other(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(_: ReadFile, arguments: JsonObject, __: ToolContext) -> ToolResult:
        if arguments["path"] == "b":
            raise ZeroDivisionError
        return ToolResult("fine")

    monkeypatch.setattr(ReadFile, "run", run)
    chat, runtime, _ = opened(calls(*map(reading, "abc")), says("ok"))
    ended = of_kind(await collect(chat.send("go")), ToolEnded)
    assert [event.message.ending for event in ended] == [Ending.COMPLETE, Ending.FAILED, Ending.COMPLETE]
    assert_well_formed(chat, runtime)


@pytest.mark.slow
async def test_a_stop_at_every_tick_of_reads_at_once_leaves_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tick_by_tick(_: ReadFile, arguments: JsonObject, __: ToolContext) -> ToolResult:
        for _ in range({"a": 3, "b": 1}.get(str(arguments["path"]), 5)):
            await asyncio.sleep(0)
        return ToolResult("done")

    monkeypatch.setattr("rolling_chat.agent.turn.reply.batches", partial(batches, interval=0))
    monkeypatch.setattr(ReadFile, "run", tick_by_tick)
    provider = ScriptedProvider(calls(*map(reading, "abc")), says("ok"))
    runtime = make_runtime(tmp_path, provider)
    endings: set[tuple[str, ...]] = set()
    outcome, ticks = Outcome.CANCELLED, 1  # the turn begins with the first
    while outcome is not Outcome.DONE:
        provider.requests.clear()
        chat = Chat.open(runtime)
        turn = asyncio.create_task(collect(chat.send("go")))
        for _ in range(ticks):
            await asyncio.sleep(0)
        chat.stop()
        outcome = (await turn)[-1].outcome
        assert_well_formed(chat, runtime)
        endings.add(tuple(m.ending for m in chat.session.messages if m.role == "tool"))
        chat.close()
        ticks += 1
    runtime.store.close()
    done, stopped = Ending.COMPLETE, Ending.CANCELLED
    assert {(stopped, done, stopped), (done, done, stopped), (done, done, done)} <= endings
