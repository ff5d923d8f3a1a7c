"""`rolling-chat mcp`: list the MCP servers with their state, add and remove one, log in to one."""

from __future__ import annotations

import asyncio
import json
import os
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rolling_chat.cli.configured import here, settings_of, trust_of
from rolling_chat.cli.exits import Exit, Failure
from rolling_chat.cli.options import Options
from rolling_chat.figures import plural
from rolling_chat.programs import trusted_path
from rolling_chat.settings.mcp_servers import McpServerConfigs, parse_mcp_json, read_mcp_servers
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.schema import Settings
from rolling_chat.settings.toml_file import replace_file
from rolling_chat.settings.trust import FolderTrust
from rolling_chat.text import exact, one_line
from rolling_chat.tools.mcp.logins import McpLogins
from rolling_chat.tools.mcp.peer import ServerError, Surroundings
from rolling_chat.tools.mcp.server import McpServer, Status
from rolling_chat.tools.mcp.servers import McpServers

_MAX_LINE = 300


@dataclass(frozen=True, slots=True)
class CheckedServer:
    """The state of a configured server after a test start."""

    name: str
    state: str
    is_fine: bool
    tools: int
    described: str

    @property
    def line(self) -> str:
        """The server on one line."""
        tools = f", {plural(self.tools, 'tool')}" if self.tools else ""
        return one_line(exact(f"{self.name}: {self.state}{tools} ({self.described})"), _MAX_LINE)


def check_servers(configs: McpServerConfigs, settings: Settings, paths: Paths) -> list[CheckedServer]:
    """Start the configured servers, wait as long as a turn would, and return their states."""
    return asyncio.run(_start_all(configs, settings, paths)) if configs.servers else []


def list_servers(options: Options, paths: Paths) -> int:
    """Print the servers with their state. Raises Failure and SettingsError."""
    settings, trust = _settings(options, paths)
    configs = read_mcp_servers(settings, paths, trust)
    seen = check_servers(configs, settings, paths)
    if options.json:
        print(
            json.dumps([{"name": one.name, "state": one.state, "tools": one.tools} for one in seen], indent=2)
        )
        return Exit.DONE
    for line in (trust.line, *configs.faults):
        if line:
            print(line)
    print(
        "\n".join(one.line for one in seen) or "No MCP servers are configured; rolling-chat mcp add adds one."
    )
    return Exit.DONE


def add_server(options: Options, paths: Paths) -> int:
    """Add a server to the user's `mcp.json`. Raises Failure and SettingsError."""
    entry: dict[str, Any]
    if options.url:
        entry = {"type": "http", "url": options.url, "headers": _pairs(options.header, "--header")}
    else:
        command, *arguments = options.program or [""]
        entry = {"type": "stdio", "command": command, "args": arguments, "env": _pairs(options.env, "--env")}
    if options.url and options.program:
        raise Failure("a server has a command or a --url, not both", Exit.USAGE)
    entry = {key: value for key, value in entry.items() if value}
    _, faults = parse_mcp_json(
        json.dumps({"mcpServers": {options.server: entry}}).encode(), str(paths.mcp_file)
    )
    if faults:
        raise Failure(faults[0], Exit.USAGE)
    kept = _read_own_file(paths)
    kept["mcpServers"][options.server] = entry
    _write(paths, kept)
    print(f"Added {options.server} to {paths.mcp_file}.")
    return Exit.DONE


def remove_server(options: Options, paths: Paths) -> int:
    """Remove a server from the user's `mcp.json`. Raises Failure and SettingsError."""
    kept = _read_own_file(paths)
    if options.server not in kept["mcpServers"]:
        raise Failure(f"{paths.mcp_file} has no MCP server {options.server!r}", Exit.USAGE)
    del kept["mcpServers"][options.server]
    _write(paths, kept)
    print(f"Removed {options.server} from {paths.mcp_file}.")
    return Exit.DONE


def log_in(options: Options, paths: Paths) -> int:
    """Let the user log in to a server in their browser. Raises Failure and SettingsError."""
    settings, trust = _settings(options, paths)
    servers = _servers(read_mcp_servers(settings, paths, trust), settings, paths)
    server = _find(servers, options.server)

    def show(address: str) -> None:
        print(f"Log in at {exact(address)}")
        with trusted_path():
            webbrowser.open(address)

    async def work() -> None:
        try:
            await server.login(show)
        finally:
            await server.stop()

    try:
        asyncio.run(work())
    except ServerError as error:
        raise Failure(f"the MCP server {server.name} {error}") from error
    print(f"Logged in to {server.name}.")
    return Exit.DONE


def log_out(options: Options, paths: Paths) -> int:
    """Forget the user's login to a server. Raises Failure and SettingsError."""
    settings, trust = _settings(options, paths)
    server = _find(_servers(read_mcp_servers(settings, paths, trust), settings, paths), options.server)
    was_known = McpLogins(paths.mcp_logins_file).forget(server.config.url)
    print(f"Logged out of {server.name}." if was_known else f"Nobody is logged in to {server.name}.")
    return Exit.DONE


async def _start_all(configs: McpServerConfigs, settings: Settings, paths: Paths) -> list[CheckedServer]:
    servers = _servers(configs, settings, paths)
    started = [server for server in servers.by_name.values() if server.config.enabled]
    for server in started:
        server.start()
    waiting = [asyncio.create_task(server.settled()) for server in started]
    if waiting:
        _, left = await asyncio.wait(waiting, timeout=settings.mcp.startup_seconds)
        for task in left:
            task.cancel()
    seen = [
        CheckedServer(
            server.name,
            server.line if server.config.enabled else "off",
            server.status in (Status.READY, Status.LOGIN) or not server.config.enabled,
            len(server.offer.tools),
            server.config.described,
        )
        for server in servers.by_name.values()
    ]
    await servers.stop()
    return seen


def _settings(options: Options, paths: Paths) -> tuple[Settings, FolderTrust]:
    trust = trust_of(options, paths)
    return settings_of(options, paths, trust=trust), trust


def _servers(configs: McpServerConfigs, settings: Settings, paths: Paths) -> McpServers:
    logins = McpLogins(paths.mcp_logins_file)
    around = Surroundings(here().resolve(), os.environ, settings.agent.environment, logins)
    return McpServers(configs.servers.values(), around, settings.mcp.call_seconds)


def _find(servers: McpServers, name: str) -> McpServer:
    server = servers.by_name.get(name)
    if server is None:
        names = ", ".join(servers.by_name) or "none"
        raise Failure(f"there is no MCP server {name!r}; there are: {names}", Exit.USAGE)
    return server


def _pairs(given: Sequence[str], option: str) -> dict[str, str]:
    pairs = [one.partition("=") for one in given]
    if wrong := next((name for name, sign, _ in pairs if not sign or not name), None):
        raise Failure(f"{option} takes NAME=VALUE, not {wrong!r}", Exit.USAGE)
    return {name: value for name, _, value in pairs}


def _read_own_file(paths: Paths) -> dict[str, Any]:
    """Return the content of the user's file. Raises Failure if it cannot be changed."""
    try:
        text = paths.mcp_file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {"mcpServers": {}}
    except (OSError, ValueError) as error:
        raise Failure(f"{paths.mcp_file}: cannot be read: {error}") from error
    try:
        kept = json.loads(text)
    except (ValueError, RecursionError):
        kept = None
    if not isinstance(kept, dict) or not isinstance(kept.setdefault("mcpServers", {}), dict):
        raise Failure(f'{paths.mcp_file}: must be an object with "mcpServers"; repair it first')
    return kept


def _write(paths: Paths, kept: dict[str, Any]) -> None:
    replace_file(paths.mcp_file, json.dumps(kept, indent=2, ensure_ascii=False) + "\n")
