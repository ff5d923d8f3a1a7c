"""MCP servers for tests, and sessions that use them."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rolling_chat.settings.mcp_servers import McpServerConfig
from rolling_chat.settings.schema import McpServerSettings, McpSettings, Settings
from rolling_chat.tools.mcp.logins import McpLogins
from rolling_chat.tools.mcp.peer import Surroundings
from rolling_chat.tools.mcp.server import McpServer
from tests.support.patience import PATIENCE_SECONDS

_SERVERS = Path(__file__).parent / "servers"
REAL, HOSTILE = str(_SERVERS / "mcp_server.py"), str(_SERVERS / "hostile_mcp.py")


def surroundings(folder: Path, **environ: str) -> Surroundings:
    known = {"PATH": os.environ["PATH"], "HOME": str(folder), **environ}
    return Surroundings(folder, known, (), McpLogins(folder / "logins.json"))


def server_of(folder: Path, *arguments: str, **environ: str) -> McpServer:
    """A server that is a program of the tests: the arguments of Python."""
    config = McpServerConfig("test", sys.executable, arguments)
    return McpServer(config, "mcp__test__", surroundings(folder, **environ), 30)


def hostile(folder: Path, way: str) -> McpServer:
    return server_of(folder, HOSTILE, way)


async def started(server: McpServer) -> McpServer:
    server.start()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await server.settled()
    return server


def settings_with(way: str = "good", *, name: str = "test", mcp: Any = None, **agent: Any) -> Settings:
    """Settings with one server of the tests that is not the SDK's."""
    settings = Settings()
    server = McpServerSettings(command=sys.executable, args=(HOSTILE, way))
    servers = MappingProxyType({name: server})
    return replace(
        settings,
        mcp=replace(McpSettings(), servers=servers, **(mcp or {})),
        agent=replace(settings.agent, **agent),
    )
