"""The MCP servers that a client passes when it opens a session."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.util import find_spec

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from rolling_chat.agent import Chat
from rolling_chat.figures import plural
from rolling_chat.messages import Json
from rolling_chat.settings.mcp_servers import parse_mcp_json
from rolling_chat.text import one_line

GivenServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio

_ORIGIN = "the client"


def can_use_servers() -> bool:
    """Return whether the package for MCP servers is installed."""
    return find_spec("mcp") is not None


def add_servers(chat: Chat, given: Sequence[GivenServer]) -> list[str]:
    """Add a client's servers to a session; return lines about those that cannot be used."""
    if not given:
        return []
    if not can_use_servers():
        names = plural(len(given), "MCP server")
        return [f"{names} of your client: not used, as the extra mcp is not installed (rolling-chat[mcp])."]
    entries = dict(_entry(server) for server in given)
    configs, faults = parse_mcp_json(json.dumps({"mcpServers": entries}).encode(), _ORIGIN)
    # the client has already substituted its variables
    chat.session.servers.add([replace(config, is_literal=True) for config in configs])
    return [f"MCP: {one_line(fault)}." for fault in faults]


def _entry(server: GivenServer) -> tuple[str, dict[str, Json]]:
    """Return a server's name, and its entry in the form of JSON files."""
    match server:
        case McpServerStdio():
            return server.name, {
                "type": "stdio",
                "command": server.command,
                "args": server.args,
                "env": _named(server.env),
            }
        case HttpMcpServer():
            return server.name, {"type": "http", "url": server.url, "headers": _named(server.headers)}
        case SseMcpServer():
            return server.name, {"type": "sse", "url": server.url}
        case _:
            return server.name, {}


def _named(pairs: Iterable[Json]) -> dict[str, str]:
    return {pair.name: pair.value for pair in pairs}
