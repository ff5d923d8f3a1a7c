"""The parts that a chat needs: settings, store, provider and folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rolling_chat.agent.attachments import Attachments
from rolling_chat.agent.server_facts import ServerFacts
from rolling_chat.agent.telemetry import Telemetry, is_installed
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import Provider
from rolling_chat.providers.retries import RetryPolicy
from rolling_chat.sessions.opening import open_store
from rolling_chat.sessions.store import SessionStore
from rolling_chat.settings.catalog import ModelCatalog, load_catalog
from rolling_chat.settings.mcp_servers import McpServerConfigs, read_mcp_servers
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.schema import Settings
from rolling_chat.settings.store_place import store_place
from rolling_chat.settings.trust import FolderTrust
from rolling_chat.tools.mcp.logins import McpLogins
from rolling_chat.tools.mcp.peer import Surroundings
from rolling_chat.tools.mcp.servers import McpServers


@dataclass
class Runtime:
    """The parts that every chat of a process shares.

    `clock` returns seconds since the epoch. `api_base` is the address from the command line, including any
    credentials.
    """

    settings: Settings
    paths: Paths
    catalog: ModelCatalog
    store: SessionStore
    provider: Provider
    folder: Path
    environ: Mapping[str, str]
    clock: Callable[[], float] = time.time
    save: bool = True
    api_base: str = ""
    given_trust: FolderTrust | None = None

    @cached_property
    def trust(self) -> FolderTrust:
        """The trust in the folder, which decides which of its own files are read.

        It is the given one, or else the user's earlier answer.
        """
        return self.given_trust or FolderTrust(self.folder, self.paths)

    @cached_property
    def telemetry(self) -> Telemetry | None:
        """Sends spans and metrics to a collector; None unless the settings name one."""
        endpoint = self.settings.telemetry.endpoint
        return Telemetry(endpoint) if endpoint and is_installed() else None

    def close_telemetry(self) -> None:
        """Send what is left to the collector; call it from a thread."""
        if "telemetry" in vars(self) and self.telemetry is not None:
            self.telemetry.close()

    @cached_property
    def attachments(self) -> Attachments:
        """The private files of messages that were too large to send."""
        return Attachments(self.paths.attachments_dir if self.save else None)

    @cached_property
    def server_facts(self) -> ServerFacts:
        """The facts that servers have reported about their models."""
        return ServerFacts(self.environ)

    @cached_property
    def mcp(self) -> McpServers:
        """The configured MCP servers, which are started when they are needed."""
        configs = self._mcp_configs.servers.values()
        return McpServers(configs, self.mcp_surroundings, self.settings.mcp.call_seconds)

    @property
    def mcp_faults(self) -> tuple[str, ...]:
        """A line for each MCP server that cannot be used as configured."""
        return self._mcp_configs.faults

    @cached_property
    def mcp_surroundings(self) -> Surroundings:
        """The folder, environment and logins for connections to MCP servers."""
        logins = McpLogins(self.paths.mcp_logins_file)
        return Surroundings(self.folder, self.environ, self.settings.agent.environment, logins)

    @cached_property
    def _mcp_configs(self) -> McpServerConfigs:
        return read_mcp_servers(self.settings, self.paths, self.trust)

    @classmethod
    def create(
        cls,
        settings: Settings,
        paths: Paths,
        folder: Path,
        environ: Mapping[str, str],
        *,
        trust: FolderTrust | None = None,
        save: bool = True,
    ) -> Runtime:
        """Create the parts from the settings.

        Without `trust`, the user's earlier answer is used. Without `save`, sessions are kept in memory.
        Raises StoreError.
        """
        catalog = load_catalog(paths.catalog_file)
        return cls(
            settings=settings,
            paths=paths,
            catalog=catalog,
            store=open_store(store_place(settings, paths) if save else None),
            provider=ModelProvider(
                environ=environ,
                catalog=catalog,
                log_file=paths.log_file,
                direct=settings.providers.direct,
                retries=RetryPolicy(minutes=settings.agent.retry_minutes),
            ),
            folder=folder.resolve(),
            environ=environ,
            save=save,
            given_trust=trust,
        )
