"""`rolling-chat mcp`, as it is typed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from tests.support.mcp import HOSTILE
from tests.support.patience import wait_for
from tests.support.processes import wait_until_ended
from tests.support.program import Program


def test_servers_are_added_listed_and_removed(program: Program) -> None:
    assert "No MCP servers are configured" in program("mcp", "list").out
    assert program("mcp", "add", "--env", "A=b", "good", sys.executable, HOSTILE, "good").code == 0
    assert program("mcp", "add", "bad", sys.executable, HOSTILE, "dead").code == 0
    listed = json.loads(program("mcp", "list", "--json").out)
    assert listed == [
        {"name": "good", "state": "ready", "tools": 1},
        {"name": "bad", "state": "failed: ended with exit code 1: cannot open the database", "tools": 0},
    ]
    doctor = program("doctor")
    assert "good: ready, 1 tool" in doctor.out
    assert doctor.code == 1
    assert program("mcp", "remove", "bad").code == 0
    assert "bad" not in program("mcp").out


def test_what_is_no_server_is_one_line(program: Program) -> None:
    for arguments, why in (
        (("add", "x"), "has neither a command nor a url"),
        (("add", "--url", "https://x/", "x", "cmd"), "not both"),
        (("add", "--env", "A", "x", "cmd"), "--env takes NAME=VALUE"),
        (("remove", "x"), "has no MCP server 'x'"),
        (("login", "x"), "there is no MCP server 'x'"),
    ):
        ran = program("mcp", *arguments)
        assert ran.code == 2
        assert why in ran.err
        assert ran.err.count("\n") == 1


def test_a_projects_servers_are_not_started_before_they_are_trusted(program: Program) -> None:
    marker = program.folder / "started"
    server = {"command": sys.executable, "args": ["-c", f"open({str(marker)!r}, 'w')"]}
    (program.folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": server}}))
    ran = program("-p", "hello", "--model", "demo/offline")
    assert ran.code == 0
    assert "Not read: .mcp.json" in ran.err
    assert "theirs" not in program("mcp", "list").out.replace(".mcp.json", "")
    program("doctor")
    assert not marker.exists()
    program("-p", "hello", "--model", "demo/offline", "--trust")
    assert marker.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_servers_end_with_the_program_however_that_ends(program: Program, number: int) -> None:
    marker = program.folder / "pid"
    program("mcp", "add", "test", sys.executable, HOSTILE, "good", str(marker))
    command = [sys.executable, "-m", "rolling_chat", "-p", "hello", "--model", "demo/offline"]
    environ = {**program.environ, "ROLLING_CHAT_OFFLINE_DELAY": "60"}
    with subprocess.Popen(command, cwd=program.folder, env=environ, stderr=subprocess.DEVNULL) as running:
        wait_for(lambda: marker.exists() and marker.read_text())
        pid = int(marker.read_text())
        running.send_signal(number)
    wait_until_ended(pid)
