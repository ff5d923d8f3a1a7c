from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.messages import Ending
from rolling_chat.tools import ToolContext, ToolError, ToolResult
from rolling_chat.tools.run_command import RunCommand
from tests.support.patience import eventually
from tests.support.processes import has_ended, is_running
from tests.support.time_limits import LIMIT, out_of_time


async def run(context: ToolContext, command: object, **more: object) -> ToolResult:
    return await RunCommand().run({"command": command, **more}, context)


def read_if_whole(file: Path) -> str:
    text = file.read_text() if file.exists() else ""
    return text if text.endswith("\n") else ""


async def pid_in(file: Path) -> int:
    """Wait until a command has written its number there; fails where it never does."""
    await eventually(lambda: read_if_whole(file))
    return int(read_if_whole(file))


async def run_out_of_time(context: ToolContext, command: str) -> ToolResult:
    """Run a command whose time is up once it has written its number into `pid`."""
    file = context.folder / "pid"
    return await out_of_time(lambda limit: run(context, command, timeout=limit), lambda: read_if_whole(file))


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_output_errors_and_exit_code_come_together_in_order(context: ToolContext) -> None:
    result = await run(context, "echo one; echo two >&2; echo three; exit 3")
    assert result == ToolResult("one\ntwo\nthree\n[exit code 3]")


async def test_it_runs_in_the_working_folder_with_nothing_on_its_input(
    folder: Path, context: ToolContext
) -> None:
    assert (await run(context, "pwd; cat")).text == f"{folder}\n[exit code 0]"
    assert (await run(context, "true")).text == "[no output]\n[exit code 0]"


async def test_binary_output_becomes_sound_text(context: ToolContext) -> None:
    text = (await run(context, r"printf 'a\0b\377\033[31mred\n'")).text
    assert text == "a\ufffdb\ufffd\x1b[31mred\n[exit code 0]"


async def test_a_flood_keeps_head_and_tail_in_bounded_memory(context: ToolContext) -> None:
    text = (await run(context, "echo first; yes 0123456789 | head -c 40000000; echo; echo last")).text
    assert text.startswith("first\n")
    assert text.endswith("last\n[exit code 0]")
    assert " bytes left out …]" in text
    assert 10_000_000 <= len(text) < 10_200_000


async def test_a_command_out_of_time_is_killed_with_its_children(folder: Path, context: ToolContext) -> None:
    command = "echo begun; (echo $BASHPID > pid; exec sleep 600); echo never"
    result = await run_out_of_time(context, command)
    assert result == ToolResult(f"begun\n[killed: not done after {LIMIT} seconds]", Ending.FAILED)
    await has_ended(await pid_in(folder / "pid"))


async def test_a_command_that_ignores_the_polite_request_is_killed(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rolling_chat.tools.process_groups._GRACE", 0.1)
    result = await run_out_of_time(context, "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done")
    assert result.ending is Ending.FAILED
    await has_ended(await pid_in(folder / "pid"))


@pytest.mark.parametrize("stops", [1, 2, 3])
async def test_a_cancelled_command_is_killed_with_its_children(
    stops: int, folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rolling_chat.tools.process_groups._GRACE", 0.2)
    task = asyncio.create_task(run(context, "trap '' TERM; sleep 600 & echo $! > pid; wait; wait; wait"))
    pid = await pid_in(folder / "pid")
    for _ in range(stops):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    await has_ended(pid)


async def test_a_command_cancelled_while_it_starts_leaves_no_children(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, cancelled = asyncio.create_subprocess_exec, asyncio.Event()

    async def start_late(*arguments: Any, **more: Any) -> asyncio.subprocess.Process:
        process = await start(*arguments, **more)
        await cancelled.wait()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_late)
    task = asyncio.create_task(run(context, "sleep 600 & echo $! > pid; wait"))
    pid = await pid_in(folder / "pid")
    task.cancel()
    await asyncio.sleep(0)
    cancelled.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await has_ended(pid)


async def test_a_process_left_in_the_background_is_told_of_and_not_waited_for(
    folder: Path, context: ToolContext
) -> None:
    result = await run(context, "sleep 600 & echo $! > pid; echo started")
    pid = await pid_in(folder / "pid")
    try:
        first, code, background = result.text.splitlines()
        assert (first, code) == ("started", "[exit code 0]")
        assert background == (
            f"[it left processes running in the background: {pid} (sleep 600); kill {pid} ends them]"
        )
        assert is_running(pid)
    finally:
        os.kill(pid, 9)
    await has_ended(pid)


async def test_a_signal_is_named(context: ToolContext) -> None:
    assert (await run(context, "kill -SEGV $$")).text.endswith("[killed by signal SIGSEGV]")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "'command' is missing"),
        ({"command": ["ls", "-l"]}, "'command' must be text"),
        ({"command": "a\x00b"}, "NUL"),
        ({"command": "ls", "timeout": 0}, "'timeout' must be 1 or more"),
        ({"command": "ls", "timeout": "soon"}, "'timeout' must be a whole number"),
        ({"command": "x" * 3_000_000}, "could not be started"),
        ({"command": "echo \ud800"}, "half a character"),
    ],
)
async def test_a_command_that_cannot_be_run_is_refused_in_one_line(
    arguments: dict[str, object], said: str, context: ToolContext
) -> None:
    with pytest.raises(ToolError, match=said) as caught:
        await RunCommand().run(arguments, context)
    assert "\n" not in str(caught.value)


async def test_a_working_folder_that_is_gone_is_an_error_in_one_line(
    context: ToolContext,
) -> None:
    gone = ToolContext(context.folder / "gone", context.environ)
    with pytest.raises(ToolError, match="could not be started"):
        await run(gone, "ls")


async def test_no_pipe_is_left_open(context: ToolContext) -> None:
    before = open_files()
    for _ in range(5):
        await run(context, "echo hello")
    with pytest.raises(ToolError):
        await run(context, "x" * 3_000_000)
    await eventually(lambda: open_files() <= before + 1)  # other threads open and close some, too


def test_the_description_is_the_exact_command() -> None:
    command = "rm -rf build &&\n  echo 'done'"
    assert RunCommand().describe({"command": command}) == command
