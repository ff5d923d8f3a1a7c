"""Where there is much to look at, requests are planned and reported beside the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.agent import Chat, PinChange
from rolling_chat.agent.request import planner as planning
from rolling_chat.agent.request.builder import PlannedRequest
from rolling_chat.agent.request.forecast import Forecast, Preview
from rolling_chat.agent.request.planner import Planner
from rolling_chat.events import PromptPlanned, TurnEnded
from rolling_chat.messages import Message
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tui import make_chat, says


class Gate:
    """Holds back what is done in a thread until it is let."""

    def __init__(self) -> None:
        self.reached, self.go = threading.Event(), threading.Event()

    def wait(self) -> None:
        assert threading.current_thread() is not threading.main_thread()
        self.reached.set()
        assert self.go.wait(PATIENCE_SECONDS)


@pytest.fixture
def long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few messages are many."""
    monkeypatch.setattr(planning, "_MAX_QUICK", 3)


def long_chat(home: Path) -> Chat:
    chat = make_chat(home, says("fine"), says("and fine"))
    for turn in range(6):
        chat._runtime.store.append(chat.session.info.id, Message("user", f"question {turn}"))
        chat._runtime.store.append(chat.session.info.id, Message("assistant", f"answer {turn}"))
    return Chat.open(chat._runtime, session=chat._runtime.store.session(chat.session.info.id))


@pytest.mark.usefixtures("long_ago")
async def test_what_is_pinned_while_a_request_is_planned_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, plan, asked = Gate(), Planner.plan, []

    def slow(planner: Planner, branch: Sequence[Message], **rest: Any) -> PlannedRequest:
        gate.wait()
        asked.append(planner.plan_state.pins.excluded)
        return plan(planner, branch, **rest)

    monkeypatch.setattr(Planner, "plan", slow)
    chat = long_chat(tmp_path)
    first = chat.session.messages[1]

    async def turn() -> list[object]:
        return [event async for event in chat.send("and now?")]

    running = asyncio.create_task(turn())
    await asyncio.to_thread(gate.reached.wait, PATIENCE_SECONDS)
    assert not chat.session.preview.is_ready
    chat.session.pins.make(PinChange.EXCLUDE, "r2")
    gate.go.set()
    events = await running
    assert asked[-1] == {first.id}
    sent = next(event for event in events if isinstance(event, PromptPlanned)).report
    assert next(row.tokens_after for row in sent.rows if row.id == first.id) == 0
    assert next(event for event in events if isinstance(event, TurnEnded)).error == ""
    assert [message.text for message in chat.session.messages][-2:] == ["and now?", "fine"]
    chat.close()


@pytest.mark.usefixtures("long_ago")
async def test_who_stops_while_a_request_is_planned_sends_nothing_and_can_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, plan = Gate(), Planner.plan

    def slow(planner: Planner, branch: Sequence[Message], **rest: Any) -> PlannedRequest:
        gate.wait()
        return plan(planner, branch, **rest)

    monkeypatch.setattr(Planner, "plan", slow)
    chat = long_chat(tmp_path)
    before = chat.session.planner.plan_state.plan

    async def turn() -> list[object]:
        return [event async for event in chat.send("and now?")]

    running = asyncio.create_task(turn())
    await asyncio.to_thread(gate.reached.wait, PATIENCE_SECONDS)
    chat.stop()
    await running
    assert chat.session.planner.plan_state.plan is before
    assert chat._runtime.store.requests(chat.session.info.id) == []
    gate.go.set()
    assert [event async for event in chat.carry_on()]
    assert chat.session.messages[-1].text == "fine"
    chat.close()


@pytest.mark.usefixtures("long_ago")
async def test_after_a_move_the_report_is_made_beside_the_loop_and_is_that_of_the_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = long_chat(tmp_path)
    await chat.session.preview.warm()
    assert chat.session.preview.is_ready
    assert chat.session.preview.can_vary
    chat.session.history.undo()
    assert not chat.session.preview.is_ready
    assert not chat.session.preview.can_vary
    gate, preview = Gate(), Forecast.preview

    def slow(forecast: Forecast, branch: Sequence[Message]) -> Preview:
        gate.wait()
        return preview(forecast, branch)

    monkeypatch.setattr(Forecast, "preview", slow)
    making = asyncio.create_task(chat.session.preview.ready())
    await asyncio.to_thread(gate.reached.wait, PATIENCE_SECONDS)
    assert not chat.session.preview.is_ready
    gate.go.set()
    await making
    assert chat.session.preview.is_ready
    assert [row.id for row in chat.session.preview.report().rows][1:] == [
        message.id for message in chat.session.messages
    ]
    chat.close()
