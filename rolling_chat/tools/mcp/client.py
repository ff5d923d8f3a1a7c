"""Connections to MCP servers with the official SDK. Importing it takes a second: use `peer.load_client`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types
from mcp import Client, MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp_types import Implementation, ListRootsResult, Root
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, FileUrl, ValidationError

from rolling_chat import __version__
from rolling_chat.messages import JsonObject
from rolling_chat.redaction import RedactingFilter, redact, secrets_in, without_secrets
from rolling_chat.settings.mcp_servers import McpServerConfig
from rolling_chat.text import exact, one_line
from rolling_chat.tools.mcp.http import HttpSeen, http_transport
from rolling_chat.tools.mcp.oauth import oauth
from rolling_chat.tools.mcp.peer import (
    ConnectionGoneError,
    ConnectionLostError,
    Hooks,
    LoginNeededError,
    ServerError,
    ShowAddress,
    Surroundings,
)
from rolling_chat.tools.mcp.stdio import Streams, find_command, stdio_transport

log = logging.getLogger("rolling_chat.tools.mcp")

_LIST_SECONDS = 30.0
_MAX_PAGES = 100
_MAX_LISTED = 1_000
_MAX_WHY = 300  # characters of a server's error
_LISTS_CHANGED = (
    mcp_types.ToolListChangedNotification,
    mcp_types.PromptListChangedNotification,
    mcp_types.ResourceListChangedNotification,
)
_hidden: set[str] = set()  # secrets of all servers, which are removed from the SDK's logs


@asynccontextmanager
async def connect(
    config: McpServerConfig, around: Surroundings, hooks: Hooks, login: ShowAddress | None = None
) -> AsyncIterator[_Peer]:
    """Connect to a server whose configuration is `expanded`; with `login`, the user may log in to it.

    Raises ServerError if it cannot be reached, or when the block ends.
    """
    seen = HttpSeen()
    secrets = secrets_in({**config.env, **config.headers})
    _hidden.update(secrets)
    try:
        async with AsyncExitStack() as stack:
            if config.is_http:
                has_own = any(name.lower() == "authorization" for name in config.headers)
                entered = (
                    None
                    if has_own
                    else await stack.enter_async_context(oauth(config.url, around.logins, login))
                )
                transport: Any = http_transport(
                    config.url, config.headers, float(config.call_seconds), entered, seen
                )
            else:
                transport = _program(config, around, hooks, secrets)
            client = Client(
                transport,
                client_info=Implementation(name="rolling-chat", version=__version__),
                list_roots_callback=_roots_of(around.folder),
                message_handler=_handler(hooks),
                cache=None,
            )
            await stack.enter_async_context(client)
            _skip_result_validation(client)
            if client.protocol_version in MODERN_PROTOCOL_VERSIONS:
                listening = asyncio.create_task(_listen(client))
                stack.push_async_callback(_cancel, listening)
            yield _Peer(client, secrets)
    except Exception as error:
        raise _in_words(error, secrets, seen) from error


def _program(
    config: McpServerConfig, around: Surroundings, hooks: Hooks, secrets: Collection[str]
) -> AbstractAsyncContextManager[Streams]:
    environ = {**without_secrets(around.environ, around.allowed), **config.env}
    folder = around.folder / Path(config.cwd).expanduser() if config.cwd else around.folder
    words = (find_command(config.command, folder, environ), *config.args)
    return stdio_transport(
        config.name, words, environ, folder, clean=lambda text: redact(text, secrets), ended=hooks.ended
    )


def _roots_of(folder: Path) -> Any:
    async def roots(_context: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(folder.as_uri()), name=folder.name)])

    return roots


def _handler(hooks: Hooks) -> Any:
    async def take(message: object) -> None:
        if isinstance(message, _LISTS_CHANGED):
            hooks.changed()

    return take


def _skip_result_validation(client: Client) -> None:
    """Accept results unchecked, because a server's schema for them may be wrong or take forever to check."""

    async def accept(name: str, result: object) -> None:
        pass

    session: Any = client.session
    session.validate_tool_result = accept


async def _listen(client: Client) -> None:
    """Subscribe to changes with the newer protocol; they reach the handler like those of older servers."""
    capabilities = client.server_capabilities
    tools, prompts, resources = capabilities.tools, capabilities.prompts, capabilities.resources
    reported = [bool(one and one.list_changed) for one in (tools, prompts, resources)]
    if not any(reported):
        return
    subscribed = client.listen(
        tools_list_changed=reported[0],
        prompts_list_changed=reported[1],
        resources_list_changed=reported[2],
    )
    with contextlib.suppress(MCPError, ListenNotSupportedError, SubscriptionLost, TimeoutError):
        async with subscribed as subscription:
            async for _ in subscription:
                pass


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and (error := task.exception()) is not None:
        log.info("listening to a server ended: %s", one_line(str(error), _MAX_WHY))


class _Peer:
    """An open connection (`peer.Peer`)."""

    def __init__(self, client: Client, secrets: Collection[str]) -> None:
        self._client = client
        self._secrets = secrets

    async def list_tools(self) -> Sequence[JsonObject]:
        if self._client.server_capabilities.tools is None:
            return ()
        return await self._all(self._client.list_tools, lambda page: page.tools)

    async def list_prompts(self) -> Sequence[JsonObject]:
        if self._client.server_capabilities.prompts is None:
            return ()
        return await self._all(self._client.list_prompts, lambda page: page.prompts)

    async def list_resources(self) -> Sequence[JsonObject]:
        if self._client.server_capabilities.resources is None:
            return ()
        return await self._all(self._client.list_resources, lambda page: page.resources)

    async def call(
        self, tool: str, arguments: JsonObject, seconds: float, on_progress: Callable[[str], None] | None
    ) -> JsonObject:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            if on_progress is not None:
                share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
                on_progress(f"{share} {message}" if message else share)

        return await self._answer(
            self._client.call_tool(
                tool, dict(arguments), read_timeout_seconds=seconds, progress_callback=report
            ),
            seconds,
        )

    async def get_prompt(self, name: str, arguments: Mapping[str, str], seconds: float) -> JsonObject:
        return await self._answer(self._client.get_prompt(name, dict(arguments)), seconds)

    async def read(self, uri: str, seconds: float) -> JsonObject:
        return await self._answer(self._client.read_resource(uri), seconds)

    async def _answer(self, asked: Awaitable[BaseModel], seconds: float) -> JsonObject:
        with self._errors():
            async with asyncio.timeout(seconds):
                result = await asked
        data: JsonObject = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return data

    async def _all(
        self, list_page: Callable[..., Awaitable[Any]], items: Callable[[Any], Sequence[BaseModel]]
    ) -> Sequence[JsonObject]:
        """Return all items of a paged list, within limits."""
        listed: list[JsonObject] = []
        cursor: str | None = None
        with self._errors():
            async with asyncio.timeout(_LIST_SECONDS):
                for _ in range(_MAX_PAGES):
                    page = await list_page(cursor=cursor)
                    listed += [
                        item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in items(page)
                    ]
                    if page.next_cursor in (None, cursor) or len(listed) >= _MAX_LISTED:
                        break
                    cursor = page.next_cursor
        return listed[:_MAX_LISTED]

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise _in_words(error, self._secrets) from error


def _in_words(error: Exception, secrets: Collection[str], seen: HttpSeen | None = None) -> ServerError:
    """Return an error whose text is one line that follows the server's name."""
    leaves = list(_leaves(error))
    own = next((one for one in leaves if isinstance(one, ServerError)), None)
    if own is not None:
        return own
    if seen is not None and seen.unauthorized:
        return LoginNeededError("wants you to log in")
    first = leaves[0]
    why = one_line(exact(redact(str(first) or type(first).__name__, secrets)), _MAX_WHY)
    match first:
        case MCPError(code=mcp_types.REQUEST_TIMEOUT) | TimeoutError():
            return ServerError("did not answer in time")
        case MCPError(message="Session terminated"):
            return ConnectionGoneError("has ended the session")
        case MCPError(code=mcp_types.CONNECTION_CLOSED):
            return ConnectionLostError("ended the connection")
        case MCPError():
            return ServerError(f"answered with an error: {why}")
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return ConnectionGoneError(f"cannot be reached: {why}")
        case httpx2.HTTPError():
            return ConnectionLostError(f"cannot be reached: {why}")
        case ValidationError():
            return ServerError("sent what is no valid answer")
        case _:
            log.warning("a connection to a server broke", exc_info=error)
            return ServerError(f"cannot be used: {why}")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions in a group, in order, or a single exception itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _forward_logs() -> None:
    """Send the SDK's logs to the program's log; without a handler they would go to the terminal."""
    for name in ("mcp", "httpx2", "httpcore2"):
        logger = logging.getLogger(name)
        logger.addHandler(_Forward(logging.WARNING))
        logger.propagate = False


class _Forward(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if RedactingFilter(_hidden).filter(record):
            log.handle(record)


_forward_logs()
