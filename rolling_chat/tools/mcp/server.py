"""One MCP server: connects in the background, reports its state, and reconnects when it is next used."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TypeVar

from rolling_chat.messages import JsonObject
from rolling_chat.providers.background_thread import in_background
from rolling_chat.settings.mcp_servers import McpConfigError, McpServerConfig
from rolling_chat.text import one_line
from rolling_chat.tools.mcp.definitions import Definition, UnusableToolError, define, plain_text
from rolling_chat.tools.mcp.naming import tool_names
from rolling_chat.tools.mcp.peer import (
    ConnectionGoneError,
    ConnectionLostError,
    Hooks,
    LoginNeededError,
    NotInstalledError,
    Peer,
    ServerError,
    ShowAddress,
    Surroundings,
    load_client,
)

log = logging.getLogger("rolling_chat.tools.mcp")

START_SECONDS = 60.0
"""Seconds for a server to answer; after that, it is not tried again until it is next used."""

_LOGIN_SECONDS = 600.0
_STOP_SECONDS = 5.0
_PAUSE_SECONDS = 0.5  # before reading changed lists
_LOSS_SECONDS = 3.0  # to wait for the reason of a lost connection
_MAX_URI = 2_000  # characters

Result = TypeVar("Result")


class Status(StrEnum):
    """The status of a server."""

    OFF = "not started"
    STARTING = "starting"
    READY = "ready"
    LOGIN = "login needed"
    FAILED = "failed"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """An argument of a prompt."""

    name: str
    required: bool


@dataclass(frozen=True, slots=True)
class ServerPrompt:
    """A prompt of a server: a message that it writes for the user."""

    name: str
    description: str
    arguments: tuple[PromptArgument, ...]


@dataclass(frozen=True, slots=True)
class ServerResource:
    """A resource of a server, which can be read by its address."""

    uri: str
    name: str


@dataclass(frozen=True, slots=True)
class Offer:
    """What a server offers; `unusable` has a line for each tool that cannot be offered, with the reason."""

    tools: tuple[Definition, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()
    resources: tuple[ServerResource, ...] = ()
    unusable: tuple[str, ...] = ()


class McpServer:
    """A configured server, whose tools' names begin with `prefix`.

    `status`, `problem` and `offer` are its last known state. `on_change` are called after each change, with a
    line for the user that is usually empty. Call its methods in the event loop.
    """

    def __init__(self, config: McpServerConfig, prefix: str, around: Surroundings, call_seconds: int) -> None:
        self.config = config
        self.prefix = prefix
        self.status = Status.OFF
        self.problem = ""
        self.offer = Offer()
        self.on_change: list[Callable[[str], None]] = []
        self._around = around
        self._seconds = float(config.call_seconds or call_seconds)
        self._users: set[str] = set()
        self._peer: Peer | None = None
        self._task: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()
        self._wake = asyncio.Event()
        self._stop = asyncio.Event()  # of the current run
        self._has_changed = False  # whether the server has reported changed lists
        self._login: ShowAddress | None = None

    @property
    def name(self) -> str:
        """The server's name in the configuration."""
        return self.config.name

    @property
    def is_starting(self) -> bool:
        """Whether the server is starting, so that its offer is not known yet."""
        return self.status is Status.STARTING

    @property
    def is_running(self) -> bool:
        """Whether the server is connected, starting or stopping."""
        return self._task is not None and not self._task.done()

    @property
    def line(self) -> str:
        """The status of the server and its problem, if any, in a few words."""
        return f"{self.status}: {self.problem}" if self.problem else str(self.status)

    def used_by(self, session: str) -> None:
        """Keep the server running for a session, until `left_by` is called."""
        self._users.add(session)

    def left_by(self, session: str) -> None:
        """Stop the server in the background if no other session uses it."""
        self._users.discard(session)
        if not self._users and self._task is not None:
            self._ask_to_stop()

    def start(self) -> None:
        """Connect in the background, unless the server is already connected."""
        if self._task is not None and not self._task.done() and not self._stop.is_set():
            return
        before, self._stop = self._task, asyncio.Event()
        self._settled.clear()
        self._peer = None
        self._show(Status.STARTING)
        self._task = asyncio.create_task(self._run(before, self._stop), name=f"mcp {self.name}")
        self._task.add_done_callback(self._over)

    async def settled(self) -> None:
        """Wait until the server is ready or has failed to start."""
        await self._settled.wait()

    async def stop(self) -> None:
        """Close the connection and end the server's program."""
        task = self._task
        if task is None:
            return
        self._ask_to_stop()
        done, _ = await asyncio.wait({task}, timeout=_STOP_SECONDS)
        if not done:
            log.warning("the MCP server %s did not stop within %s seconds", self.name, _STOP_SECONDS)
            task.cancel()
            await asyncio.wait({task}, timeout=_STOP_SECONDS)

    async def login(self, show: ShowAddress) -> None:
        """Have the user log in at an address that is shown, and connect. Raises ServerError."""
        if not self.config.is_http:
            raise ServerError("is a program: it has no login")
        await self.stop()
        self._login = show
        try:
            self.start()
            await self._ready()
        finally:
            self._login = None

    async def call(
        self, tool: str, arguments: JsonObject, on_progress: Callable[[str], None] | None = None
    ) -> JsonObject:
        """Call a tool by its own name, connecting first if need be. Raises ServerError."""
        seconds = self._seconds
        return await self._asked(lambda peer: peer.call(tool, arguments, seconds, on_progress))

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> JsonObject:
        """Return the messages of a prompt, connecting first if need be. Raises ServerError."""
        return await self._asked(lambda peer: peer.get_prompt(name, arguments, self._seconds))

    async def read(self, uri: str) -> JsonObject:
        """Return the contents of a resource, connecting first if need be. Raises ServerError."""
        return await self._asked(lambda peer: peer.read(uri, self._seconds))

    async def _asked(self, ask: Callable[[Peer], Awaitable[Result]]) -> Result:
        try:
            return await ask(await self._ready())
        except ConnectionGoneError:
            # The request was not received. A restarted server does not know the old session: connect again.
            await self.stop()
            return await ask(await self._ready())
        except ConnectionLostError as error:
            await self._settle_loss()
            why = self.problem or str(error)
            raise ServerError(f"{why}; whether the call was carried out is not known") from error

    async def _settle_loss(self) -> None:
        """Wait a moment until the end of the connection and its reason are known."""
        if self._task is not None:
            self._wake.set()
            await asyncio.wait({self._task}, timeout=_LOSS_SECONDS)

    async def _ready(self) -> Peer:
        """Return the open connection, or a new one. Raises ServerError."""
        if self._peer is None or self._stop.is_set():
            self.start()
            await self.settled()
        if self._peer is None:
            raise ServerError(self.problem or "cannot be used")
        return self._peer

    def _ask_to_stop(self) -> None:
        self._stop.set()
        self._wake.set()
        if self._peer is None and self._task is not None:
            self._task.cancel()  # it is starting

    async def _run(self, before: asyncio.Task[None] | None, stop: asyncio.Event) -> None:
        """Connect, and keep the connection until the server is stopped or has ended."""
        if before is not None:
            await asyncio.wait({before})
        self._wake.clear()
        was_ready, hooks = False, Hooks(self._changed, partial(self._ended, stop))
        seconds = START_SECONDS if self._login is None else _LOGIN_SECONDS
        try:
            config = self._expanded()
            client = await load_client()
            async with asyncio.timeout(seconds) as limit:
                async with client.connect(config, self._around, hooks, self._login) as peer:
                    self.offer = await self._read_offer(peer)
                    limit.reschedule(None)
                    self._peer, was_ready = peer, True
                    self._settled.set()
                    self._show(Status.READY)
                    await self._serve(peer, stop)
            self._show(Status.OFF)
        except asyncio.CancelledError:
            self._show(Status.OFF)
            if not stop.is_set():
                raise
        except TimeoutError:
            self._fail(Status.FAILED, f"did not answer within {seconds:.0f} seconds")
        except LoginNeededError as error:
            self._fail(Status.LOGIN, str(error))
        except NotInstalledError as error:
            # the line is the same for all servers, so that it is shown only once
            self._show(
                Status.FAILED, str(error), "MCP servers need the extra mcp: pip install 'rolling-chat[mcp]'."
            )
        except ServerError as error:
            self._fail(Status.ENDED if was_ready else Status.FAILED, str(error))
        except Exception as error:
            log.exception("the connection to the MCP server %s broke", self.name)
            self._fail(Status.FAILED, f"broke: {type(error).__name__}")
        finally:
            if self._stop is stop:  # otherwise another run has replaced this one
                self._peer = None
                self._settled.set()

    def _over(self, task: asyncio.Task[None]) -> None:
        """Record the end of a run, even of one that was stopped before it began."""
        if self._task is task and not self._settled.is_set():
            self._settled.set()
            self._show(Status.OFF)

    def _expanded(self) -> McpServerConfig:
        try:
            config = self.config.expanded(self._around.environ)
        except McpConfigError as error:
            raise ServerError(f"cannot be used: {error}") from error
        return replace(config, call_seconds=int(self._seconds))

    async def _serve(self, peer: Peer, stop: asyncio.Event) -> None:
        """Read changed lists again, until the server is stopped or has ended."""
        while not stop.is_set():
            await self._wake.wait()
            self._wake.clear()
            if self.problem:
                raise ServerError(self.problem)
            if self._has_changed:
                await self._pause(stop)
                self._has_changed = False
                try:
                    self.offer = await self._read_offer(peer)
                except ConnectionLostError:
                    raise
                except ServerError as error:
                    log.warning("the MCP server %s %s", self.name, error)
                else:
                    self._show(Status.READY)

    async def _pause(self, stop: asyncio.Event) -> None:
        """Wait a little, because a server may report changes continually."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PAUSE_SECONDS):
                await stop.wait()

    async def _read_offer(self, peer: Peer) -> Offer:
        tools = await peer.list_tools()
        prompts, resources = await peer.list_prompts(), await peer.list_resources()
        return await in_background(partial(_offer, self.prefix, tools, prompts, resources))

    def _changed(self) -> None:
        self._has_changed = True
        self._wake.set()

    def _ended(self, stop: asyncio.Event, why: str) -> None:
        """Record that the server ended by itself."""
        if not stop.is_set():
            self.problem = why
            self._wake.set()

    def _fail(self, status: Status, problem: str) -> None:
        problem = self.problem or problem  # the reason that its program ended is more informative
        log.warning("the MCP server %s %s", self.name, problem)
        next_step = {
            Status.LOGIN: f"/mcp login {self.name} does that",
            Status.ENDED: "it is connected to again when it is next used",
        }.get(status, f"/mcp restart {self.name} tries again")
        self._show(status, problem, f"The MCP server {self.name} {problem.rstrip('.')}; {next_step}.")

    def _show(self, status: Status, problem: str = "", line: str = "") -> None:
        """Change the status, and inform the listeners."""
        self.status, self.problem = status, problem
        for report in tuple(self.on_change):
            report(line)


def _offer(
    prefix: str,
    tools: Sequence[JsonObject],
    prompts: Sequence[JsonObject],
    resources: Sequence[JsonObject],
) -> Offer:
    """Parse a server's lists; an invalid part does not affect the others."""
    listed = {tool["name"]: tool for tool in reversed(tools) if isinstance(tool.get("name"), str)}
    listed = dict(reversed(listed.items()))
    names = tool_names(prefix, tuple(listed))
    definitions: list[Definition] = []
    unusable: list[str] = []
    for own_name, tool in listed.items():
        try:
            definitions.append(define(own_name, names[own_name], tool))
        except UnusableToolError as error:
            unusable.append(f"{one_line(own_name, 80)}: {error}")
    return Offer(
        tuple(definitions),
        tuple(_prompt(one) for one in prompts if _is_prompt(one)),
        tuple(
            ServerResource(one["uri"], plain_text(one.get("title") or one["name"], 200))
            for one in resources
            if isinstance(one.get("uri"), str) and one["uri"].isprintable() and len(one["uri"]) <= _MAX_URI
        ),
        tuple(unusable),
    )


def _is_prompt(listed: JsonObject) -> bool:
    """Return whether a prompt has a name that can be typed."""
    name = listed.get("name")
    return (
        isinstance(name, str) and 0 < len(name) <= 100 and name.isprintable() and not set(name) & set(" /:")
    )


def _prompt(listed: JsonObject) -> ServerPrompt:
    arguments = tuple(
        PromptArgument(plain_text(one["name"], 60), one.get("required") is True)
        for one in listed.get("arguments") or ()
    )
    text = listed.get("description") or listed.get("title") or ""
    return ServerPrompt(listed["name"], one_line(plain_text(text, 200)), arguments)
