"""The MCP servers of one session: which are on, and which of their tools are offered to the model."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial

from rolling_chat.agent.errors import ChatError, in_words
from rolling_chat.agent.runtime import Runtime
from rolling_chat.agent.session_state import SessionState
from rolling_chat.agent.turn.running import TurnGate
from rolling_chat.context.tokens import TokenEstimator, estimator_for
from rolling_chat.events import Emit, Listener, Noticed
from rolling_chat.figures import plural
from rolling_chat.permissions.rules import MCP_PREFIX
from rolling_chat.providers.background_thread import in_background
from rolling_chat.settings.mcp_servers import McpServerConfig
from rolling_chat.tools import Tool
from rolling_chat.tools.mcp.peer import ServerError, ShowAddress
from rolling_chat.tools.mcp.server import McpServer, Status
from rolling_chat.tools.mcp.servers import McpServers
from rolling_chat.tools.mcp.tool import SearchTool, ServerTool

log = logging.getLogger("rolling_chat.agent.session_servers")

_SILENT_SECONDS = 1.0  # of waiting for servers before the user is told
_MAX_NAMED = 5  # servers in one line


@dataclass(frozen=True, slots=True)
class PricedTool:
    """A tool of a server with its size in tokens; unless `is_offered`, the model finds it by search."""

    name: str
    own_name: str
    tokens: int
    is_offered: bool


class SessionServers:
    """Offers the tools of the servers that are on; changes take effect with the next turn.

    The tools do not change within a turn, so that the beginning of the prompt does not either.
    """

    def __init__(
        self, runtime: Runtime, state: SessionState, gate: TurnGate, listener: Listener, *, has_any: bool
    ) -> None:
        self._runtime = runtime
        self._has_any = has_any  # False in a task, which has only the tools that it was given
        self._state = state
        self._gate = gate
        self._listener = listener
        self._own: dict[str, McpServer] = {}  # only in this session, by name
        self._off = {name for name, server in self._all.items() if not server.config.enabled}
        self._prices: dict[str, int] = {}  # tokens by schema, in JSON
        self._priced_for = ""
        self._refreshing: asyncio.Task[None] | None = None
        self._is_closed = False
        self._last_line = ""  # about a server
        self.tools: Mapping[str, tuple[PricedTool, ...]] = {}  # by server, as they were offered last
        self._stored = runtime.store.state(state.info.id).servers
        self._restore()
        self._watch(self._all.values())
        for server in self.in_use:  # so that none stops while this session replaces another one
            server.used_by(state.info.id)

    @property
    def all(self) -> Sequence[McpServer]:
        """The session's servers, in the order in which they are configured."""
        return tuple(self._all.values())

    @property
    def _all(self) -> Mapping[str, McpServer]:
        return {**self._runtime.mcp.by_name, **self._own} if self._has_any else {}

    def is_on(self, server: McpServer) -> bool:
        """Return whether the session uses a server."""
        return server.name not in self._off

    @property
    def sizes(self) -> Sequence[tuple[str, int, int]]:
        """The name, number of tools and their tokens for each server with tools in every request."""
        offered = {name: [one for one in tools if one.is_offered] for name, tools in self.tools.items()}
        return [
            (name, len(tools), sum(one.tokens for one in tools)) for name, tools in offered.items() if tools
        ]

    def find(self, name: str) -> McpServer:
        """Return the server of that name. Raises ChatError."""
        server = self._all.get(name)
        if server is None:
            names = ", ".join(self._all) or "none"
            raise ChatError(f"There is no MCP server {name[:80]!r}; there are: {names}.")
        return server

    def add(self, configs: Iterable[McpServerConfig]) -> None:
        """Add servers for this session only; they end with it, and replace others of the same name."""
        session, known = self._state.info.id, {name: server.config for name, server in self._own.items()}
        new = [config for config in configs if known.get(config.name) != config]
        if not new or not self._has_any:
            return
        seconds = self._runtime.settings.mcp.call_seconds
        added = McpServers(new, self._runtime.mcp_surroundings, seconds).by_name
        for name, server in added.items():
            if name in self._own:
                self._own[name].left_by(session)
            server.used_by(session)
        self._own |= added
        self._watch(added.values())

    def switch(self, name: str, *, on: bool) -> str:
        """Switch a server on or off for this session, and return a line that reports it. Raises ChatError."""
        server = self.find(name)
        if on:
            self._off.discard(name)
            server.used_by(self._state.info.id)
            server.start()
            line = f"The MCP server {name} is on; its tools are offered once it has started."
        else:
            self._off.add(name)
            server.left_by(self._state.info.id)
            line = f"The MCP server {name} is off in this session; /mcp on {name} takes that back."
        self._refresh_soon()
        return line

    async def restart(self, name: str) -> str:
        """Stop a server and start it again; return a line that reports it. Raises ChatError."""
        server = self.find(name)
        await server.stop()
        return self.switch(name, on=True)

    async def logout(self, name: str) -> str:
        """Delete the user's login to a server; return a line that reports it. Raises ChatError."""
        server = self.find(name)
        with in_words():
            was_known = self._runtime.mcp_surroundings.logins.forget(server.config.url)
        await server.stop()
        self._refresh_soon()
        return f"Logged out of {name}." if was_known else f"You were not logged in to {name}."

    async def login(self, name: str, show: ShowAddress) -> str:
        """Have the user log in to a server; return a line that reports it. Raises ChatError."""
        server = self.find(name)
        self._off.discard(name)
        try:
            await server.login(show)
        except ServerError as error:
            raise ChatError(f"The MCP server {name} {error}.") from error
        return f"Logged in to the MCP server {name}: {plural(len(server.offer.tools), 'tool')}."

    def start(self) -> None:
        """Start the servers that are on and not running, in the background."""
        if self._state.is_followed or self._is_closed:
            return
        for server in self.in_use:
            if server.status is Status.OFF:
                server.start()

    async def ready(self, emit: Emit) -> None:
        """Wait until the servers that are on have started, at most as long as the settings say."""
        if not self._all:
            return
        self.start()
        waits = [server for server in self.in_use if server.is_starting]
        if waits:
            await self._wait_for(waits, emit)
        await self.refresh()

    async def refresh(self) -> None:
        """Offer the servers' current tools. Call it between turns, or before a turn plans anything."""
        tools = [
            ServerTool(server, definition)
            for server in self.in_use
            for definition in server.offer.tools
            if self._is_chosen(definition.name)
        ]
        prices = await in_background(partial(self._price, tools)) if tools else {}
        searched = self._searched(tools, prices)
        offered = [tool for tool in tools if tool.server.name not in searched]
        self.tools = {
            server.name: tuple(
                PricedTool(
                    tool.name, tool.definition.own_name, prices[tool.name], server.name not in searched
                )
                for tool in tools
                if tool.server is server
            )
            for server in self.in_use
        }
        found = tuple(tool for tool in tools if tool.server.name in searched)
        more: list[Tool] = [*offered, *([SearchTool(found)] if found else [])]
        self._state.setup.use_more_tools(more)
        await self._keep()

    async def stop(self) -> None:
        """Stop the session's own servers and those of the process, before the event loop ends."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait({self._refreshing})
        await asyncio.gather(
            *(server.stop() for server in self._own.values()),
            *([self._runtime.mcp.stop()] if self._has_any else ()),
        )

    def close(self) -> None:
        """Release the servers; those that no other session uses are stopped."""
        self._is_closed = True
        for server in self._all.values():
            server.left_by(self._state.info.id)
            with suppress(ValueError):
                server.on_change.remove(self._server_changed)

    @property
    def in_use(self) -> Sequence[McpServer]:
        """The servers that are on."""
        return [server for server in self._all.values() if self.is_on(server)]

    def _watch(self, servers: Iterable[McpServer]) -> None:
        for server in servers:
            server.on_change.append(self._server_changed)

    def _restore(self) -> None:
        """Switch the servers on and off as stored with the session; add a notice about missing ones."""
        if not self._has_any:
            return
        stored = self._stored
        self._off |= {name for name, on in stored.items() if not on}
        self._off -= {name for name, on in stored.items() if on}
        missing = [name for name, on in stored.items() if on and name not in self._all]
        if missing:
            which = "server {}, which is" if len(missing) == 1 else "servers {}, which are"
            names = which.format(", ".join(missing[:_MAX_NAMED]))
            self._state.notices.append(f"This session used the MCP {names} not configured here now.")
        self._state.notices.extend(f"MCP: {line}." for line in self._runtime.mcp_faults)

    async def _keep(self) -> None:
        """Store which servers are off and which had their tools offered, if that has changed."""
        configured = self._runtime.mcp.by_name
        offered = {name: True for name, tools in self.tools.items() if tools and name in configured}
        off = {name: False for name in self._off if name in configured}
        servers = {name: on for name, on in self._stored.items() if name not in configured or on}
        servers |= offered | off
        if servers != self._stored:
            self._stored = servers
            await self._state.conversation.queue.run(partial(self._state.update, servers=servers))

    def _is_chosen(self, name: str) -> bool:
        """Return whether the settings offer a tool: all are offered, or those that a pattern matches."""
        match self._runtime.settings.agent.tools:
            case "all":
                return True
            case "none":
                return False
            case names:
                return any(fnmatchcase(name, chosen) for chosen in names if chosen.startswith(MCP_PREFIX))

    async def _wait_for(self, servers: Sequence[McpServer], emit: Emit) -> None:
        seconds = self._runtime.settings.mcp.startup_seconds
        waiting = [asyncio.create_task(server.settled()) for server in servers]
        try:
            _, left = await asyncio.wait(waiting, timeout=min(_SILENT_SECONDS, seconds))
            if left and seconds > _SILENT_SECONDS:
                names = _named(server for server in servers if server.is_starting)
                await emit(Noticed(f"Waiting for {names} to start, up to {seconds} s (mcp.startup_seconds)."))
                _, left = await asyncio.wait(left, timeout=seconds - _SILENT_SECONDS)
            if left:
                names = _named(server for server in servers if server.is_starting)
                await emit(Noticed(f"{names} has not started yet: this turn goes on without.", warning=True))
        finally:
            for task in waiting:
                task.cancel()

    def _server_changed(self, line: str) -> None:
        if self._is_closed:
            return
        if line and line != self._last_line and self._listener.on_server is not None:
            self._listener.on_server(line)
        self._last_line = line or self._last_line
        self._refresh_soon()

    def _refresh_soon(self) -> None:
        """Offer the current tools in the background, unless a turn runs: the next one will offer them."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh_while_idle())

    async def _refresh_while_idle(self) -> None:
        await asyncio.sleep(0)  # several changes often arrive together
        if not self._gate.idle.is_set() or self._is_closed or self._state.is_followed:
            return
        before = self._state.setup.revision
        try:
            await self.refresh()
        except Exception:
            log.exception("the tools of servers could not be offered")
        if self._state.setup.revision != before and self._listener.on_server is not None:
            self._listener.on_server("")

    def _price(self, tools: Sequence[ServerTool]) -> Mapping[str, int]:
        """Return the tokens of each tool by name, as the model counts them; call it from a thread."""
        setup, choice = self._state.setup, self._runtime.settings.context.token_estimator
        estimator = estimator_for(setup.model, choice, setup.measurements.calibration)
        if self._priced_for != setup.model:
            self._prices, self._priced_for = {}, setup.model
        return {tool.name: self._price_of(tool, estimator) for tool in tools}

    def _price_of(self, tool: ServerTool, estimator: TokenEstimator) -> int:
        text = json.dumps(tool.schema)
        if text not in self._prices:
            schema = tool.schema
            # exclude what a provider adds once for all tools
            self._prices[text] = estimator.count_tools([schema, schema]) - estimator.count_tools([schema])
        return self._prices[text]

    def _searched(self, tools: Sequence[ServerTool], prices: Mapping[str, int]) -> set[str]:
        """Return the servers whose tools are found by search: those with the largest, until the rest fits."""
        room = int(self._runtime.settings.mcp.max_share * self._state.setup.window)
        sizes: dict[str, int] = {}
        for tool in tools:
            sizes[tool.server.name] = sizes.get(tool.server.name, 0) + prices[tool.name]
        searched: set[str] = set()
        for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
            if sum(size for other, size in sizes.items() if other not in searched) <= room:
                break
            searched.add(name)
        return searched


def _named(servers: Iterable[McpServer]) -> str:
    names = [server.name for server in servers]
    shown = ", ".join(names[:_MAX_NAMED]) + (" and others" if len(names) > _MAX_NAMED else "")
    return f"the MCP {'server' if len(names) == 1 else 'servers'} {shown}"
