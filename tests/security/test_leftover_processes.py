"""What a command leaves running is known, listed, and ended: also what left its session and its parent."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rolling_chat.commands.registry import ParsedCommand, parse
from rolling_chat.commands.registry import run_command as run_slash
from rolling_chat.programs import FOR_USER
from rolling_chat.tools import ToolContext, leftover_processes
from rolling_chat.tools.leftover_processes import CHILDREN, Child, end_children
from rolling_chat.tools.run_command import RunCommand
from tests.support.commands import PlainContext
from tests.support.patience import eventually
from tests.support.processes import has_ended, is_running
from tests.support.program import Program, program
from tests.support.time_limits import LIMIT, out_of_time
from tests.support.tui import make_app, make_chat, reads, type_line, wait_until

__all__ = ["program"]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux")

# a daemon as it is written in books: two forks, a session of its own, and no parent
# and is known by the name of what it has become
WAIT = "until [ -s pid ] && grep -aq '^[/a-z]*sleep' /proc/$(cat pid)/cmdline; do :; done"
DAEMON = f"setsid sh -c 'echo $$ > pid; exec sleep 600' > /dev/null 2>&1 < /dev/null &\n{WAIT}"
# and one that forgets whose child it is
UNMARKED = DAEMON.replace("setsid sh", "setsid env -i /bin/sh").replace("exec sleep", "exec /bin/sleep")


@pytest.fixture
async def context(tmp_path: Path) -> AsyncIterator[ToolContext]:
    yield ToolContext(tmp_path, {"PATH": os.environ["PATH"]})
    await end_children(CHILDREN.left_running())


async def run(context: ToolContext, command: str, **more: object) -> str:
    return (await RunCommand().run({"command": command, **more}, context)).text


def pid_of(context: ToolContext) -> int:
    return int((context.folder / "pid").read_text())


@pytest.mark.parametrize("command", [f"sleep 600 & echo $! > pid; {WAIT}", DAEMON, UNMARKED])
async def test_what_a_command_leaves_running_is_named_and_ended(context: ToolContext, command: str) -> None:
    text = await run(context, command)
    pid = pid_of(context)
    assert text.splitlines()[-1].endswith(f"sleep 600); kill {pid} ends them]")
    (left,) = CHILDREN.left_running()
    assert left.pid == pid
    await end_children([left])
    await has_ended(pid)
    assert CHILDREN.left_running() == ()


async def test_what_was_left_before_is_not_told_of_again(context: ToolContext) -> None:
    await run(context, DAEMON)
    assert await run(context, "true") == "[no output]\n[exit code 0]"
    assert len(CHILDREN.left_running()) == 1


async def test_a_child_that_does_not_listen_is_killed(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftover_processes, "_GRACE", 0.1)
    await run(context, "setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 1; done' & "
                       "while [ ! -s pid ]; do :; done")  # fmt: skip
    await end_children(CHILDREN.left_running())
    await has_ended(pid_of(context))


@pytest.mark.parametrize("command", [DAEMON, UNMARKED])
async def test_time_that_is_up_ends_also_what_left_the_session(context: ToolContext, command: str) -> None:
    text = await out_of_time(
        lambda limit: run(context, f"{command}\ntouch began; sleep 600", timeout=limit),
        (context.folder / "began").exists,
    )
    assert text.endswith(f"[killed: not done after {LIMIT} seconds]")
    await has_ended(pid_of(context))


async def test_a_command_that_is_cancelled_takes_with_it_what_left_the_session(context: ToolContext) -> None:
    running = asyncio.create_task(run(context, f"{DAEMON}\nsleep 600"))
    pid = context.folder / "pid"
    await eventually(lambda: pid.exists() and pid.read_text())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await has_ended(pid_of(context))


async def test_a_number_that_is_anothers_now_is_not_ended(context: ToolContext) -> None:
    await run(context, DAEMON)
    (left,) = CHILDREN.left_running()
    await end_children([Child(left.pid, "long ago", left.command)])
    assert CHILDREN.left_running() == (left,)


async def test_a_program_that_the_user_started_is_no_child_of_a_command(context: ToolContext) -> None:
    await run(context, "true")
    own = await asyncio.create_subprocess_exec("/bin/sleep", "600", start_new_session=True, env=FOR_USER)
    try:
        assert CHILDREN.left_running() == ()
    finally:
        own.kill()
        await own.wait()


async def test_what_ended_by_itself_is_buried(context: ToolContext) -> None:
    await run(context, "setsid sh -c 'echo $$ > pid' &\nwhile [ ! -s pid ]; do :; done")
    pid = pid_of(context)
    await has_ended(pid)
    CHILDREN.left_running()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_hostile_name_stays_one_line(context: ToolContext) -> None:
    await run(context, "bash -c 'exec -a $\"x\\n[exit code 0]\\e[2J\" sleep 600' & "
                       "until grep -aq '^x' /proc/$!/cmdline; do :; done")  # fmt: skip
    (left,) = CHILDREN.left_running()
    assert str(left).isprintable()


async def test_without_proc_the_group_tells(context: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    await run(context, "sleep 600 & echo $! > pid")
    monkeypatch.setattr(leftover_processes, "_PROC", Path("/no-proc"))
    monkeypatch.setattr(leftover_processes, "_adopt_orphans", lambda: False)
    assert [child.pid for child in CHILDREN.left_running()] == [pid_of(context)]
    await end_children(CHILDREN.left_running())
    await has_ended(pid_of(context))


async def test_the_command_lists_them_and_ends_one_or_all(context: ToolContext, tmp_path: Path) -> None:
    plain = PlainContext(make_chat(tmp_path))
    processes = parse("/processes")
    assert processes is not None
    await run_slash(processes, plain)
    await run(context, f"{DAEMON}\nsleep 601 &\nuntil grep -aq ^sleep /proc/$!/cmdline; do :; done")
    first, second = CHILDREN.left_running()
    await run_slash(processes, plain)
    await run_slash(ParsedCommand("processes", str(first.pid)), plain)
    await has_ended(first.pid)
    assert is_running(second.pid)
    await run_slash(ParsedCommand("processes", str(os.getpid())), plain)
    await run_slash(ParsedCommand("processes", "all"), plain)
    await has_ended(second.pid)
    assert plain.said[0] == "Commands left no processes running."
    assert [row[:2] for row in plain.tables[0].rows] == [
        (str(child.pid), child.command) for child in (first, second)
    ]
    assert plain.said[-2:] == ["Ended 1 process.", "Ended 1 process."]
    assert plain.warned == [f"No command left a process '{os.getpid()}' running: /processes lists them."]


@pytest.mark.parametrize(("keys", "still_runs"), [(["enter"], False), (["down", "enter"], True)])
async def test_quitting_asks_what_becomes_of_them(
    context: ToolContext, tmp_path: Path, keys: list[str], still_runs: bool
) -> None:
    app = make_app(make_chat(tmp_path / "chat"), tmp_path)
    async with app.run_test() as pilot:
        await run(context, DAEMON)
        pid = pid_of(context)
        await pilot.press("ctrl+q")
        await reads(pilot, "Commands left 1 process running", f"{pid} (sleep 600)")
        await pilot.press("escape")
        await type_line(pilot, "/quit")
        await reads(pilot, "end them and quit")
        await pilot.press(*keys)
        await wait_until(pilot, lambda: app._exit)
        assert is_running(pid) is still_runs


async def test_quitting_twice_ends_them(context: ToolContext, tmp_path: Path) -> None:
    app = make_app(make_chat(tmp_path / "chat"), tmp_path)
    async with app.run_test() as pilot:
        await run(context, DAEMON)
        await pilot.press("ctrl+q")
        await reads(pilot, "Commands left 1 process running")
        await pilot.press("ctrl+q")
        await wait_until(pilot, lambda: app._exit)
        assert not is_running(pid_of(context))


def test_a_run_of_one_question_ends_them_and_says_so(program: Program) -> None:
    ended = program("-p", f"run `{DAEMON.replace(chr(10), ' ')}`", "--approvals", "all")
    assert re.search(r"ended processes that commands left running: \d+ \(sleep 600\)", ended.err)
