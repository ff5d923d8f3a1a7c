"""A turn can be stopped at any moment, and whatever the moment, the conversation stays in order."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from rolling_chat.agent import Chat, ChatError
from rolling_chat.agent.turn.batching import batches
from rolling_chat.events import (
    Event,
    Outcome,
    Permission,
    PermissionAnswer,
    PermissionAsked,
    PermissionRequest,
    ReplyEnded,
    TextAdded,
    ToolEnded,
    ToolStarted,
    TurnEnded,
)
from rolling_chat.messages import Ending
from rolling_chat.providers.protocol import ReasoningDelta, Retrying, TextDelta, ToolCallDelta
from rolling_chat.settings.schema import AgentSettings, Settings
from rolling_chat.tools import ToolResult
from rolling_chat.tools.read_file import ReadFile
from rolling_chat.tools.run_command import RunCommand
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
from tests.support.patience import PATIENCE_SECONDS

TURN = [
    calls(
        call("read_file", '{"path": "a.txt"}', "c1"),
        call("run_command", '{"command": "true"}', "c2"),
        call("fly", "{}", "c3"),
        text="First I look.",
    ),
    [Retrying(1, 2, 0.0, "throttled"), *says("Here it is.", reasoning="Hm.")],
]


async def _ask(_: PermissionRequest) -> PermissionAnswer:
    for _ in range(3):
        await asyncio.sleep(0)
    return PermissionAnswer(Permission.ONCE)


async def _stop_after(chat: Chat, ticks: int) -> None:
    for _ in range(ticks):
        await asyncio.sleep(0)
    chat.stop()


async def _tick_by_tick(*_: object) -> ToolResult:
    """A tool that needs neither thread nor process, whose time nobody could count in ticks."""
    for _ in range(4):
        await asyncio.sleep(0)
    return ToolResult("done")


async def test_a_stop_at_every_tick_of_the_event_loop_leaves_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more tick each time, until the turn is through before the stop comes."""
    monkeypatch.setattr("rolling_chat.agent.turn.reply.batches", partial(batches, interval=0))
    monkeypatch.setattr(ReadFile, "run", _tick_by_tick)
    monkeypatch.setattr(RunCommand, "run", _tick_by_tick)
    outcomes: list[Outcome] = []
    shapes: set[tuple[tuple[str, str], ...]] = set()
    provider = ScriptedProvider(*TURN)
    settings = Settings(agent=AgentSettings(sandbox="off"))  # which is looked for in a thread
    runtime = make_runtime(tmp_path, provider, settings=settings)
    ticks = 0
    while Outcome.DONE not in outcomes:
        provider.requests.clear()
        chat = Chat.open(runtime, ask=_ask)
        async with asyncio.TaskGroup() as group:
            turn = group.create_task(collect(chat.send("go")))
            group.create_task(_stop_after(chat, ticks))
        outcomes.append(turn.result()[-1].outcome)
        assert not chat.busy
        assert provider.open_streams == 0
        assert_well_formed(chat, runtime)
        shapes.add(tuple((message.role, message.ending) for message in chat.session.messages))
        chat.close()
        ticks += 1
    runtime.store.close()
    assert set(outcomes) == {Outcome.CANCELLED, Outcome.DONE}
    assert len(shapes) == 7, "the stops did not reach every place"


STEPS = {
    "nothing yet": ([Gate()], []),
    "some text": ([TextDelta("Half"), Gate()], [("assistant", "Half", Ending.CANCELLED)]),
    "some thoughts": ([ReasoningDelta("Hm"), Gate()], [("assistant", "", Ending.CANCELLED)]),
    "half a call": ([ToolCallDelta(0, "c", "list_files", "{"), Gate()], []),
    "text and half a call": (
        [TextDelta("I look"), ToolCallDelta(0, "c", "list_files", "{"), Gate()],
        [("assistant", "I look", Ending.CANCELLED)],
    ),
}


@pytest.mark.parametrize("name", STEPS)
async def test_what_had_come_is_kept_and_marked(name: str, opened: Opened) -> None:
    script, kept = STEPS[name]
    gate = script[-1] = Gate()
    chat, runtime, provider = opened(script, says("Then this."))
    turn = asyncio.create_task(collect(chat.send("go")))
    await gate.reached.wait()
    chat.stop()
    chat.stop()
    events = await turn
    assert events[-1].outcome is Outcome.CANCELLED
    assert [(m.role, m.text, m.ending) for m in chat.session.messages[1:]] == kept
    assert [e.message for e in of_kind(events, ReplyEnded)] == list(chat.session.messages[1:])
    assert provider.open_streams == 0
    assert_well_formed(chat, runtime)
    assert (await collect(chat.send("and now?")))[-1].outcome is Outcome.DONE
    assert_well_formed(chat, runtime)


async def test_calls_that_were_not_answered_are_answered_with_cancelled(opened: Opened) -> None:
    chat, runtime, _ = opened(
        calls(
            call("list_files", "{}", "a"),
            call("run_command", '{"command": "sleep 600"}', "b"),
            call("list_files", "{}", "c"),
        ),
        approvals="all",
    )
    events: list[Event] = []
    async for event in chat.send("go"):
        events.append(event)
        if isinstance(event, ToolStarted) and event.call.id == "b":
            chat.stop()
    assert events[-1].outcome is Outcome.CANCELLED
    assert [(e.call.id, e.message.ending) for e in of_kind(events, ToolEnded)] == [
        ("a", Ending.COMPLETE), ("b", Ending.CANCELLED), ("c", Ending.CANCELLED),
    ]  # fmt: skip
    assert [m.text for m in chat.session.messages[-2:]] == [
        "[cancelled while it ran; what it had done by then stays done]", "[cancelled: not run]",
    ]  # fmt: skip
    assert_well_formed(chat, runtime)


async def test_a_stop_while_leave_is_asked_takes_the_question_back(opened: Opened) -> None:
    chat, runtime, _ = opened(calls(call("run_command", '{"command": "touch made"}')))
    taken_back = asyncio.Event()

    async def ask(_: PermissionRequest) -> PermissionAnswer:
        try:
            await asyncio.Event().wait()
        finally:
            taken_back.set()
        raise AssertionError

    chat.listener.ask = ask
    async for event in chat.send("go"):
        if isinstance(event, PermissionAsked):
            await asyncio.sleep(0)
            chat.stop()
    assert taken_back.is_set()
    assert not (runtime.folder / "made").exists()
    assert chat.session.messages[-1].text == "[cancelled: not run]"
    assert_well_formed(chat, runtime)


async def test_a_stop_before_the_turn_ran_a_line_ends_it_all_the_same(opened: Opened) -> None:
    chat, runtime, provider = opened(says("never"))
    events = chat.send("go")
    await anext(events)
    chat.stop()
    rest = [event async for event in events]
    assert [type(event) for event in rest] == [TurnEnded]
    assert provider.requests == []
    assert [m.text for m in chat.session.messages] == ["go"]
    assert_well_formed(chat, runtime)


async def test_a_listener_that_goes_away_stops_the_turn(opened: Opened) -> None:
    chat, runtime, provider = opened([*says("Half")[:-1], Gate()])
    events = chat.send("go")
    async for event in events:
        if isinstance(event, TextAdded):
            break
    await events.aclose()
    assert not chat.busy
    assert provider.open_streams == 0
    assert chat.session.messages[-1].ending is Ending.CANCELLED
    assert_well_formed(chat, runtime)


async def test_a_listener_whose_task_is_cancelled_stops_the_turn(opened: Opened) -> None:
    gate = Gate()
    chat, runtime, provider = opened([*says("Half")[:-1], gate])
    task = asyncio.create_task(collect(chat.send("go")))
    await gate.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not chat.busy
    assert provider.open_streams == 0
    assert_well_formed(chat, runtime)


async def test_a_listener_that_is_forgotten_stops_the_turn(opened: Opened) -> None:
    chat, runtime, provider = opened([*says("Half")[:-1], Gate()])

    async def listen_a_little(events: AsyncIterator[Event]) -> None:
        async for event in events:
            if isinstance(event, TextAdded):
                return

    await listen_a_little(chat.send("go"))
    gc.collect()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while chat.busy:  # noqa: ASYNC110 - nobody is left to hear of it
            await asyncio.sleep(0)
    assert provider.open_streams == 0
    assert_well_formed(chat, runtime)


async def test_one_turn_at_a_time(opened: Opened) -> None:
    gate = Gate()
    chat, *_ = opened([gate, *says("ok")])
    waiting = chat.send("never begun")
    turn = asyncio.create_task(collect(chat.send("go")))
    await gate.reached.wait()
    for refused in (lambda: chat.send("more"), chat.carry_on, chat.start_new, chat.fork):
        with pytest.raises(ChatError, match="still answering"):
            refused()
    with pytest.raises(ChatError, match="still answering"):
        await anext(waiting)
    gate.opened.set()
    assert (await turn)[-1].outcome is Outcome.DONE
    assert [m.text for m in chat.session.messages] == ["go", "ok"]


async def test_a_stop_without_a_turn_does_nothing(opened: Opened) -> None:
    chat, *_ = opened(says("ok"))
    chat.stop()
    assert (await collect(chat.send("go")))[-1].outcome is Outcome.DONE
    chat.stop()
