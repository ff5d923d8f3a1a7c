"""The configured MCP servers of this process, by name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from rolling_chat.settings.mcp_servers import McpServerConfig
from rolling_chat.tools.mcp.naming import server_prefixes
from rolling_chat.tools.mcp.peer import Surroundings
from rolling_chat.tools.mcp.server import McpServer


class McpServers:
    """Servers that several sessions may share; each is started when the first of them needs it."""

    def __init__(self, configs: Iterable[McpServerConfig], around: Surroundings, call_seconds: int) -> None:
        configs = tuple(configs)
        prefixes = server_prefixes(config.name for config in configs)
        self.by_name: Mapping[str, McpServer] = MappingProxyType(
            {one.name: McpServer(one, prefixes[one.name], around, call_seconds) for one in configs}
        )

    async def stop(self) -> None:
        """Close all connections and end the programs of all servers."""
        if self.by_name:
            await asyncio.gather(*(server.stop() for server in self.by_name.values()))
