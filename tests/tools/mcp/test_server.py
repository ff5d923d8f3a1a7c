"""Servers as they are: of the SDK, and such as misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rolling_chat.settings.mcp_servers import McpServerConfig
from rolling_chat.tools.leftover_processes import CHILDREN
from rolling_chat.tools.mcp.peer import ServerError, load_client
from rolling_chat.tools.mcp.results import as_result
from rolling_chat.tools.mcp.server import McpServer, Status
from tests.support.mcp import REAL, hostile, server_of, started, surroundings
from tests.support.patience import eventually


@contextlib.asynccontextmanager
async def running(server: McpServer) -> AsyncIterator[McpServer]:
    try:
        yield await started(server)
    finally:
        await server.stop()


async def test_a_server_of_the_sdk_over_stdio(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Everything that needs a whole server, in one test: its import takes a second."""
    lines: list[str] = []
    secret = "sk-live-1234567890abcdef"
    server = server_of(tmp_path, REAL, API_KEY=secret, PLAIN="yes")
    server.on_change.append(lines.append)
    async with running(server):
        assert server.status is Status.READY, server.line
        assert "mcp__test__add" in [tool.name for tool in server.offer.tools]
        assert [prompt.name for prompt in server.offer.prompts] == ["review"]
        assert "notes://today" in [resource.uri for resource in server.offer.resources]
        assert as_result(await server.call("add", {"a": 1, "b": 2}), "test").text == "3"
        assert as_result(await server.call("picture", {}), "test").pictures[0].startswith("data:image/png")
        failed = as_result(await server.call("fail", {}), "test")
        assert "the printer is on fire" in failed.text
        assert (await server.read("notes://monday"))["contents"][0]["text"] == "Notes of monday."
        prompt = await server.get_prompt("review", {"file": "x.py"})
        assert "Review x.py for bugs." in json.dumps(prompt)

        # its environment is that of commands
        assert as_result(await server.call("environment", {"name": "PLAIN"}), "test").text == "yes"
        assert as_result(await server.call("environment", {"name": "API_KEY"}), "test").text == "(not set)"

        before = len(server.offer.tools)
        await server.call("grow", {"name": "later"})
        await eventually(lambda: len(server.offer.tools) == before + 1)

        # progress is told, and a stop reaches the server
        told: list[str] = []
        marker = tmp_path / "began"
        slow = asyncio.create_task(server.call("slow", {"marker": str(marker)}, told.append))
        await eventually(lambda: marker.exists() and told)
        slow.cancel()
        await asyncio.wait({slow})
        assert slow.cancelled()
        assert told == ["1 of 2 half of it"]
        assert as_result(await server.call("add", {"a": 2, "b": 2}), "test").text == "4"

        # killed in the middle of a call: one line, and the next use connects again
        caplog.set_level(logging.INFO)
        with pytest.raises(ServerError, match=r"killed by signal 9: out of memory; whether .* is not known"):
            await server.call("die", {})
        await eventually(lambda: server.status is Status.ENDED)
        (line,) = filter(None, lines)
        assert line == (
            "The MCP server test was killed by signal 9: out of memory; "
            "it is connected to again when it is next used."
        )
        assert "test says: out of memory" in caplog.text
        assert as_result(await server.call("add", {"a": 3, "b": 3}), "test").text == "6"
        assert not CHILDREN.left_running()
    assert server.status is Status.OFF


@pytest.mark.parametrize(
    ("way", "names"),
    [
        ("good", ["mcp__test__plain"]),
        ("pages", ["mcp__test__plain"]),
        ("schemas", ["mcp__test__round", "mcp__test__plain"]),
    ],
)
async def test_what_is_wrong_with_a_tool_harms_no_other(tmp_path: Path, way: str, names: list[str]) -> None:
    async with running(hostile(tmp_path, way)) as server:
        assert [tool.name for tool in server.offer.tools] == names
        assert len(server.offer.unusable) == (way == "schemas")


async def test_names_and_descriptions_are_made_harmless(tmp_path: Path) -> None:
    async with running(hostile(tmp_path, "names")) as server:
        names = [tool.name for tool in server.offer.tools]
        assert len(set(names)) == len(names) == 4
        assert all(name.startswith("mcp__test__") and len(name) <= 64 for name in names)
    async with running(hostile(tmp_path, "descriptions")) as server:
        (tool,) = server.offer.tools
        assert "\x1b" not in json.dumps(tool.schema, ensure_ascii=False)
        assert len(json.dumps(tool.schema)) < 3_000


async def test_what_a_server_asks_of_us_is_declined_but_the_folder(tmp_path: Path) -> None:
    async with running(hostile(tmp_path, "asks")) as server:
        answers = {one["id"]: one for one in json.loads(as_result(await server.call("plain", {}), "t").text)}
        assert "error" in answers["s1"]
        assert "error" in answers["s2"]
        assert answers["s3"]["result"]["roots"][0]["uri"] == tmp_path.as_uri()


async def test_noise_on_stdout_is_passed_over(tmp_path: Path) -> None:
    async with running(hostile(tmp_path, "noise")) as server:
        assert as_result(await server.call("plain", {}), "test").text == "ok"


async def test_a_message_that_is_too_long_ends_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await load_client()
    monkeypatch.setattr("rolling_chat.tools.mcp.stdio.MAX_MESSAGE", 1_000_000)
    async with running(hostile(tmp_path, "flood")) as server:
        with pytest.raises(ServerError, match="sent a message of more than 1 MB"):
            await server.call("plain", {})


async def test_nonsense_is_one_line(tmp_path: Path) -> None:
    async with running(hostile(tmp_path, "nonsense")) as server:
        with pytest.raises(ServerError, match="no valid answer"):
            await server.call("plain", {})


async def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    async with running(hostile(tmp_path, "dead")) as server:
        assert server.status is Status.FAILED
        assert "ended with exit code 1: cannot open the database" in server.problem
    missing = McpServer(McpServerConfig("x", "no-such-program-here"), "mcp__x__", surroundings(tmp_path), 5)
    assert "there is no program no-such-program-here" in (await started(missing)).problem
    unset = McpServer(McpServerConfig("x", "${NO_SUCH}"), "mcp__x__", surroundings(tmp_path), 5)
    assert "the variable NO_SUCH is not set" in (await started(unset)).problem


async def test_a_program_of_the_folder_is_not_started_by_a_plain_name(tmp_path: Path) -> None:
    planted = tmp_path / "planted-server"
    planted.write_text("#!/bin/sh\ntouch started\n")
    planted.chmod(0o755)
    around = surroundings(tmp_path, PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    server = McpServer(McpServerConfig("x", "planted-server"), "mcp__x__", around, 5)
    assert "there is no program planted-server" in (await started(server)).problem
    assert not (tmp_path / "started").exists()


async def test_a_server_that_starts_for_ever_can_be_stopped(tmp_path: Path) -> None:
    server = hostile(tmp_path, "silent")
    server.start()
    await eventually(lambda: server.status is Status.STARTING)
    await server.stop()
    assert server.status is Status.OFF


async def test_a_server_that_is_switched_off_and_on_at_once_is_on(tmp_path: Path) -> None:
    async with running(hostile(tmp_path, "good")) as server:
        server.used_by("one")
        server.left_by("one")
        server.start()
        await server.settled()
        assert as_result(await server.call("plain", {"a": 1}), "test").text == '{"a": 1}'


async def test_without_the_extra_one_line_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "rolling_chat.tools.mcp.client", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    server = await started(hostile(tmp_path, "good"))
    assert server.problem == "needs the extra mcp: pip install 'rolling-chat[mcp]'"
