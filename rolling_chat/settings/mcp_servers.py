"""Read the configured MCP servers from the settings and from JSON files that other programs use too.

A JSON file is an object with `mcpServers`, each with a `command` or a `url`. The user's own servers take
precedence over those of a project, and a project's files are read only if they are trusted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rolling_chat.setting_rules import is_address
from rolling_chat.settings.paths import Paths
from rolling_chat.settings.project_files import FileKind
from rolling_chat.settings.schema import McpServerSettings, Settings
from rolling_chat.settings.trust import FolderTrust
from rolling_chat.text import printable

_MAX_BYTES = 1_000_000
_MAX_SERVERS = 100
_MAX_NAME = 64  # characters
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_ADDRESS_KEYS = ("url", "httpUrl", "serverUrl")  # the names in different programs
_HTTP_TYPES = frozenset({"http", "streamable-http", "streamableHttp", "streamable_http"})
_NO_TEXTS: Mapping[str, str] = MappingProxyType({})


class McpConfigError(Exception):
    """An MCP server that cannot be used as configured; the text is one line."""


@dataclass(frozen=True, slots=True)
class McpServerConfig:
    """The configuration of one MCP server: a program to start, or the address of a running one.

    Unless it `is_literal`, its texts may contain environment variables, which `expanded` replaces. `origin`
    is the file that it comes from.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: _NO_TEXTS)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_TEXTS)
    enabled: bool = True
    call_seconds: int = 0
    origin: str = ""
    is_literal: bool = False

    @property
    def is_http(self) -> bool:
        """Whether the server is reached at an address instead of started as a program."""
        return bool(self.url)

    @property
    def described(self) -> str:
        """The server on one line, without its variables and headers, which may contain secrets."""
        return self.url if self.is_http else " ".join((self.command, *self.args))

    def expanded(self, environ: Mapping[str, str]) -> McpServerConfig:
        """Return the configuration with `${NAME}` and `${NAME:-default}` replaced.

        Raises McpConfigError for a variable that is not set.
        """

        def text(value: str) -> str:
            return value if self.is_literal else _VARIABLE.sub(_value, value)

        def _value(match: re.Match[str]) -> str:
            value = environ.get(match[1]) or match[2]
            if value is None:
                raise McpConfigError(f"the variable {match[1]} is not set")
            return value

        config = replace(
            self,
            command=text(self.command),
            args=tuple(map(text, self.args)),
            env={name: text(value) for name, value in self.env.items()},
            cwd=text(self.cwd),
            url=text(self.url),
            headers={name: text(value) for name, value in self.headers.items()},
        )
        if config.url and not is_address(config.url):
            raise McpConfigError(
                f"{printable(config.url, 200)} is no address beginning with http:// or https://"
            )
        return config


@dataclass(frozen=True, slots=True)
class McpServerConfigs:
    """The configured servers by name, and a line for everything that cannot be used."""

    servers: Mapping[str, McpServerConfig] = field(default_factory=lambda: MappingProxyType({}))
    faults: tuple[str, ...] = ()


def read_mcp_servers(settings: Settings, paths: Paths, trust: FolderTrust) -> McpServerConfigs:
    """Read the servers of the settings, the user's `mcp.json` and the folder's trusted files."""
    found: dict[str, McpServerConfig] = {}
    faults: list[str] = []
    for file in trust.contents(FileKind.MCP_SERVERS):
        found |= _read(file.data, file.path, faults)
    found |= _read(_own(paths.mcp_file, faults), paths.mcp_file, faults)
    for name, server in settings.mcp.servers.items():
        origin = settings.origins.get(f"mcp.servers.{name}.command", str(paths.config_file))
        if not _is_name(name):
            faults.append(f"{origin}: {_NAME_RULE.format(name=printable(name, _MAX_NAME))}")
        elif fault := _fault_of(server.command, server.url):
            faults.append(f"{origin}: the MCP server {name} {fault}")
        else:
            found[name] = _of_settings(name, server, origin)
    if len(found) > _MAX_SERVERS:
        faults.append(f"Only {_MAX_SERVERS} MCP servers are used, of {len(found)}")
        found = dict(list(found.items())[-_MAX_SERVERS:])
    return McpServerConfigs(MappingProxyType(found), tuple(faults))


def parse_mcp_json(data: bytes, origin: str) -> tuple[list[McpServerConfig], list[str]]:
    """Return the servers of a JSON file with `mcpServers`, and a line for each that cannot be used."""
    try:
        given = json.loads(data)
    except (ValueError, RecursionError):
        return [], [f"{origin}: is no JSON"]
    servers = given.get("mcpServers") if isinstance(given, dict) else None
    if not isinstance(servers, dict):
        return [], [f'{origin}: must be an object with "mcpServers"']
    found: list[McpServerConfig] = []
    faults: list[str] = []
    for name, entry in servers.items():
        try:
            found.append(_of_json(name, entry, origin))
        except McpConfigError as error:
            faults.append(f"{origin}: {error}")
    return found, faults


_NAME_RULE = "{name}: the name of an MCP server is at most 64 letters, digits, spaces and the signs . _ -"


def _own(path: Path, faults: list[str]) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        faults.append(f"{printable(str(path), 300)}: cannot be read: {error.strerror or error}")
        return b""


def _read(data: bytes, path: Path, faults: list[str]) -> Mapping[str, McpServerConfig]:
    origin = printable(str(path), 300)
    if not data.strip():
        return {}
    if len(data) > _MAX_BYTES:
        faults.append(f"{origin}: has more than {_MAX_BYTES:,} bytes")
        return {}
    servers, wrong = parse_mcp_json(data, origin)
    faults += wrong
    return {server.name: server for server in servers}


def _is_name(name: str) -> bool:
    return bool(re.fullmatch(r"[\w .-]{1,64}", name)) and name.strip() == name and name.isprintable()


def _fault_of(command: str, url: str) -> str:
    """Return why a server cannot be used; empty if it can."""
    if command and url:
        return "has both a command and a url"
    return "" if command or url else "has neither a command nor a url"


def _of_settings(name: str, server: McpServerSettings, origin: str) -> McpServerConfig:
    return McpServerConfig(
        name, server.command, server.args, server.env, server.cwd, server.url, server.headers,
        server.enabled, server.call_seconds, origin,
    )  # fmt: skip


def _of_json(name: str, entry: object, origin: str) -> McpServerConfig:
    """Read one server of a JSON file, ignoring unknown keys. Raises McpConfigError."""
    if not _is_name(name):
        raise McpConfigError(_NAME_RULE.format(name=printable(name, _MAX_NAME)))
    if not isinstance(entry, dict):
        raise McpConfigError(f"the MCP server {name} must be an object")
    kind = entry.get("type")
    if kind == "sse":
        raise McpConfigError(f"the MCP server {name} has the old type sse: give its streamable HTTP address")
    command = _text(name, entry, "command")
    url = next(filter(None, (_text(name, entry, key) for key in _ADDRESS_KEYS)), "")
    if kind in _HTTP_TYPES:
        command = ""
    elif kind == "stdio":
        url = ""
    if fault := _fault_of(command, url):
        raise McpConfigError(f"the MCP server {name} {fault}")
    return McpServerConfig(
        name,
        command,
        tuple(_texts(name, entry, "args")),
        _named_texts(name, entry, "env"),
        _text(name, entry, "cwd"),
        url,
        _named_texts(name, entry, "headers"),
        enabled=entry.get("disabled") is not True and entry.get("enabled") is not False,
        origin=origin,
    )


def _text(server: str, entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key, "")
    return next(_checked(server, key, (value,)))


def _texts(server: str, entry: Mapping[str, Any], key: str) -> Iterator[str]:
    values = entry.get(key, [])
    if not isinstance(values, list):
        raise McpConfigError(f"the MCP server {server}: {key} must be a list of texts")
    return _checked(server, key, values)


def _named_texts(server: str, entry: Mapping[str, Any], key: str) -> Mapping[str, str]:
    values = entry.get(key, {})
    if not isinstance(values, dict):
        raise McpConfigError(f"the MCP server {server}: {key} must be an object of texts")
    names = _checked(server, key, tuple(values))
    return MappingProxyType(dict(zip(names, _checked(server, key, tuple(values.values())), strict=True)))


def _checked(server: str, key: str, values: Sequence[object]) -> Iterator[str]:
    for value in values:
        if not isinstance(value, str) or "\0" in value:
            raise McpConfigError(f"the MCP server {server}: {key} must be text")
        yield value
