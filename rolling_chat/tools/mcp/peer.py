"""The protocol of connections to MCP servers, without the SDK."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from rolling_chat.gc_tuning import without_collection
from rolling_chat.messages import JsonObject
from rolling_chat.providers.background_thread import in_background
from rolling_chat.settings.mcp_servers import McpServerConfig

if TYPE_CHECKING:
    from rolling_chat.tools.mcp.logins import McpLogins

_CLIENT = "rolling_chat.tools.mcp.client"


class ServerError(Exception):
    """A failure of an MCP server; the text follows the server's name, such as "did not answer"."""


class NotInstalledError(ServerError):
    """The SDK is not installed; the text says how to install it, for all servers."""

    def __init__(self) -> None:
        super().__init__("needs the extra mcp: pip install 'rolling-chat[mcp]'")


class ConnectionLostError(ServerError):
    """The connection ended; the last request may have been carried out or not."""


class ConnectionGoneError(ServerError):
    """The connection was already gone; the request was not carried out."""


class LoginNeededError(ServerError):
    """The server requires a login."""


class Peer(Protocol):
    """An open connection to an MCP server. Its methods raise ServerError and nothing else."""

    async def list_tools(self) -> Sequence[JsonObject]:
        """Return the server's tools, in the protocol's form."""
        ...

    async def list_prompts(self) -> Sequence[JsonObject]:
        """Return the server's prompts, in the protocol's form."""
        ...

    async def list_resources(self) -> Sequence[JsonObject]:
        """Return the server's resources, in the protocol's form."""
        ...

    async def call(
        self, tool: str, arguments: JsonObject, seconds: float, on_progress: Callable[[str], None] | None
    ) -> JsonObject:
        """Call a tool and return its result; canceling the task informs the server."""
        ...

    async def get_prompt(self, name: str, arguments: Mapping[str, str], seconds: float) -> JsonObject:
        """Return the messages of a prompt."""
        ...

    async def read(self, uri: str, seconds: float) -> JsonObject:
        """Return the contents of a resource."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The working folder, environment and logins for connections.

    `folder` is reported to the server. `environ` is the program's environment, and `allowed` its variables
    that a server's program gets even though they look like secrets.
    """

    folder: Path
    environ: Mapping[str, str]
    allowed: Collection[str]
    logins: McpLogins


@dataclass(frozen=True, slots=True)
class Hooks:
    """The callbacks of a connection: `changed` after the lists have changed, `ended` with the reason."""

    changed: Callable[[], None]
    ended: Callable[[str], None]


class Client(Protocol):
    """The module that opens connections with the SDK."""

    def connect(
        self, config: McpServerConfig, around: Surroundings, hooks: Hooks, login: ShowAddress | None = None
    ) -> AbstractAsyncContextManager[Peer]:
        """Connect to a server whose configuration is `expanded`."""
        ...


class ShowAddress(Protocol):
    """Shows the user the address to log in at."""

    def __call__(self, address: str, /) -> None:
        """Show the address."""
        ...


_loading = threading.Lock()


async def load_client() -> Client:
    """Import the SDK in a thread, which takes 1.1 seconds the first time. Raises ServerError without it."""
    return await in_background(_load)


def _load() -> Client:
    try:
        with _loading, without_collection():
            return cast("Client", importlib.import_module(_CLIENT))
    except ImportError as error:
        if error.name and error.name.startswith("rolling_chat"):
            raise
        raise NotInstalledError from error
