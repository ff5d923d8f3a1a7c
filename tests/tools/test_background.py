"""Commands in the background: started, read, ended, and told of when they are over."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.background import BACKGROUND, MAX_KEPT_BYTES, BackgroundCommand
from rolling_chat.tools.command_output import CommandOutput
from rolling_chat.tools.leftover_processes import CHILDREN, end_children
from rolling_chat.tools.process import Output
from rolling_chat.tools.run_command import RunCommand
from tests.support.patience import PATIENCE_SECONDS as HANG_LIMIT
from tests.support.patience import eventually, wait_for
from tests.support.sandbox import real_sandbox


@pytest.fixture
async def context(context: ToolContext) -> AsyncIterator[ToolContext]:
    yield replace(context, session="mine")
    await BACKGROUND.end_all()
    BACKGROUND.take_news("mine")
    BACKGROUND._commands.clear()
    await end_children(CHILDREN.left_running())


async def start(context: ToolContext, command: str) -> BackgroundCommand:
    text = (await RunCommand().run({"command": command, "background": True}, context)).text
    match = re.match(r"\[(b\d+) runs in the background; command_output", text)
    assert match
    found = BACKGROUND.find(match[1], "mine")
    assert found is not None
    return found


async def over(command: BackgroundCommand) -> None:
    async with asyncio.timeout(HANG_LIMIT):
        await command.wait()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def read(context: ToolContext, command: BackgroundCommand, **more: object) -> str:
    return (await CommandOutput().run({"id": command.id, **more}, context)).text


@pytest.mark.parametrize("is_sandboxed", [False, True])
async def test_its_output_is_read_in_pieces_and_its_end_is_told_once(
    context: ToolContext, folder: Path, is_sandboxed: bool
) -> None:
    if is_sandboxed:
        context = replace(context, sandbox=real_sandbox())
    command = await start(
        context, "echo one; touch said; while [ ! -e go ]; do sleep 0.01; done; echo two; exit 3"
    )
    await eventually((folder / "said").exists)
    first = await read(context, command)
    assert re.fullmatch(r"one\n\[running for \d+ s\]", first)
    assert (await read(context, command)).startswith("[no new output]\n[running")
    assert BACKGROUND.take_news("mine") == ""
    (folder / "go").touch()
    await over(command)
    assert re.fullmatch(r"two\n\[exit code 3 after \d+ s\]", await read(context, command))
    assert BACKGROUND.take_news("another") == ""
    news = BACKGROUND.take_news("mine")
    assert news == f"[background command {command} is over: {command.state}]"
    assert BACKGROUND.take_news("mine") == ""
    assert names(folder) == ["go", "said"]


async def test_what_it_wrote_while_the_loop_was_busy_is_read(context: ToolContext, folder: Path) -> None:
    command = await start(context, "echo one; touch said; sleep 600")
    wait_for((folder / "said").exists)  # and the event loop does not get to the pipe
    assert (await read(context, command)).startswith("one\n[running")


@pytest.mark.parametrize("is_sandboxed", [False, True])
async def test_ending_one_ends_all_of_it_and_is_no_news(context: ToolContext, is_sandboxed: bool) -> None:
    if is_sandboxed:
        context = replace(context, sandbox=real_sandbox())
    command = await start(context, "setsid sleep 600 & touch said; sleep 600")
    await eventually((context.folder / "said").exists)
    text = await read(context, command, end=True)
    assert re.search(r"\[ended after \d+ s\]$", text)
    assert BACKGROUND.take_news("mine") == ""
    assert CHILDREN.left_running() == ()
    assert BACKGROUND.running() == ()


async def test_a_command_meanwhile_does_not_take_it_for_a_leftover(context: ToolContext) -> None:
    await start(context, "sleep 600")
    assert (await RunCommand().run({"command": "true"}, context)).text == "[no output]\n[exit code 0]"
    assert CHILDREN.left_running() == ()
    assert len(BACKGROUND.running()) == 1


async def test_another_session_neither_reads_nor_ends_it(context: ToolContext) -> None:
    command = await start(context, "sleep 600")
    other = replace(context, session="other")
    assert (await CommandOutput().run({}, other)).text == "There are no background commands."
    with pytest.raises(ToolError, match="There is no background command"):
        await read(other, command, end=True)
    assert command.code is None
    assert (await CommandOutput().run({}, context)).text.startswith(f"{command.id} (sleep 600): running for ")


async def test_of_a_gigabyte_a_bounded_part_is_kept(context: ToolContext) -> None:
    command = await start(context, "echo first; yes 0123456789 | head -c 20000000; echo last")
    await over(command)
    text = await read(context, command)
    assert len(text) < MAX_KEPT_BYTES + 100_000
    assert text.startswith("[… ")
    assert "last\n[exit code 0 after" in text


async def test_one_that_cannot_be_started_is_one_line(context: ToolContext) -> None:
    before = BACKGROUND.all()
    with pytest.raises(ToolError, match="could not be started"):
        await RunCommand().run(
            {"command": "true", "background": True}, replace(context, folder=context.folder / "gone")
        )
    assert BACKGROUND.all() == before


@pytest.mark.parametrize(
    ("start_at", "wanted"),
    [
        (0, (b"abcdwxyz", 4)),
        (2, (b"cdwxyz", 4)),
        (6, (b"wxyz", 2)),
        (8, (b"wxyz", 0)),
        (10, (b"yz", 0)),
        (12, (b"", 0)),
    ],
)
def test_what_is_new_is_what_was_kept_of_it(start_at: int, wanted: tuple[bytes, int]) -> None:
    output = Output(limit=8)
    for byte in b"abcdefghwxyz":
        output.add(bytes([byte]))
    assert output.since(start_at) == wanted
