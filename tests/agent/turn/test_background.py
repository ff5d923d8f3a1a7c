"""Commands in the background, as the model and the user meet them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rolling_chat.commands import ParsedCommand
from rolling_chat.commands.registry import run_command as run_slash
from rolling_chat.events import Permission
from rolling_chat.tools.background import BACKGROUND, BackgroundCommand, unconfined
from tests.agent.test_permissions import Answers
from tests.support.agent import Opened, assert_well_formed, call, calls, collect, says
from tests.support.commands import PlainContext
from tests.support.patience import PATIENCE_SECONDS as HANG_LIMIT
from tests.support.patience import eventually
from tests.support.tui import make_app, make_chat, reads, wait_until


@pytest.fixture(autouse=True)
async def _ended() -> AsyncIterator[None]:
    yield
    await BACKGROUND.end_all()
    BACKGROUND._commands.clear()


def starts(command: str, id: str = "c1") -> object:
    return calls(call("run_command", json.dumps({"command": command, "background": True}), id))


async def over(command: BackgroundCommand) -> None:
    async with asyncio.timeout(HANG_LIMIT):
        await command.wait()
    await asyncio.sleep(0)


async def test_the_question_says_that_it_runs_in_the_background(opened: Opened) -> None:
    chat, *_ = opened(starts("sleep 600"), says("ok"), sandbox="off")
    chat.listener.ask = ask = Answers(Permission.ONCE)
    await collect(chat.send("go"))
    assert [(request.title, request.detail) for request in ask.requests] == [
        ("Allow run_command? (in the background)", "sleep 600")
    ]
    (command,) = BACKGROUND.running()
    assert command.owner == chat.session.info.id


async def test_its_end_is_told_with_the_users_next_message_once(opened: Opened) -> None:
    chat, runtime, provider = opened(
        starts("while [ ! -e go ]; do sleep 0.01; done; exit 3"), says("ok"), says("ok"), says("ok"),
        approvals="all", sandbox="off",
    )  # fmt: skip
    await collect(chat.send("one"))
    (command,) = BACKGROUND.all()
    (runtime.folder / "go").touch()
    await over(command)
    await collect(chat.send("two"))
    assert command.state.startswith("exit code 3 after ")
    news = f"[background command {command} is over: {command.state}]"
    assert provider.requests[2].messages[-1].text == f"two\n\n{news}"
    await collect(chat.send("three"))
    assert provider.requests[3].messages[-1].text == "three"
    assert_well_formed(chat, runtime)


async def test_its_end_is_told_with_the_next_result(opened: Opened) -> None:
    waits = "touch go; while [ ! -e over ]; do sleep 0.01; done"
    chat, runtime, provider = opened(
        starts("while [ ! -e go ]; do sleep 0.01; done"),
        calls(call("run_command", json.dumps({"command": waits}), "c2")),
        says("ok"), approvals="all", sandbox="off",
    )  # fmt: skip
    turn = asyncio.create_task(collect(chat.send("go")))
    await eventually(BACKGROUND.all)
    (command,) = BACKGROUND.all()
    await over(command)
    (runtime.folder / "over").touch()
    await turn
    assert provider.requests[2].messages[-1].text == (
        f"[background command {command} is over: {command.state}]\n[no output]\n[exit code 0]"
    )


async def test_the_user_lists_reads_and_ends_it(opened: Opened) -> None:
    chat, *_ = opened(starts("echo hello; sleep 600"), says("ok"), approvals="all", sandbox="off")
    await collect(chat.send("go"))
    (command,) = BACKGROUND.running()
    await eventually(lambda: command.output.total)
    plain = PlainContext(chat)
    for argument in ("", command.id, f"end {command.id}", f"end {command.id}"):
        await run_slash(ParsedCommand("processes", argument), plain)
    ((*row, state),) = plain.tables[0].rows
    assert row == [command.id, "echo hello; sleep 600"]
    assert re.fullmatch(r"running for \d+ s", state)
    ((title, text),) = plain.shown
    assert (title.split(" · ")[0], text) == (command.id, "hello\n")
    assert plain.said[-2:] == [f"Ended {command}.", f"{command} is over: {command.state}."]


@pytest.mark.parametrize("keeps", [False, True])
async def test_quitting_asks_what_becomes_of_it_and_the_screen_tells_its_end(
    tmp_path: Path, opened: Opened, keeps: bool
) -> None:
    chat, *_ = opened(starts("sleep 600"), says("ok"), approvals="all", sandbox="off")
    await collect(chat.send("go"))
    (command,) = BACKGROUND.running()
    app = make_app(make_chat(tmp_path / "chat"), tmp_path)
    async with app.run_test() as pilot:
        await reads(pilot, "Ask anything")
        surroundings = unconfined(["/bin/sh", "-c", "exit 4"], {})
        other = await BACKGROUND.start("exit 4", "x", surroundings, tmp_path, is_sandboxed=False)
        await reads(pilot, f"{other.id} (exit 4) is over: exit code 4")
        await pilot.press("ctrl+q")
        await reads(pilot, "Commands left 1 process running", str(command))
        await pilot.press(*(["down"] if keeps else []), "enter")
        await wait_until(pilot, lambda: app._exit)
    assert (command.code is None) is keeps
