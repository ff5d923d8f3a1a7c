"""/mcp: list the MCP servers of the session with their tools; switch one on or off, or log in to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat.commands.base import Arguments, Choice, Column, Command, CommandContext, Table
from rolling_chat.text import exact, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rolling_chat.agent.session_servers import PricedTool, SessionServers
    from rolling_chat.tools.mcp.server import McpServer

_MAX_LINE = 120
_WORDS = (
    Choice("on", "on", "switch a server on in this session"),
    Choice("off", "off", "switch a server off in this session"),
    Choice("restart", "restart", "start a server again"),
    Choice("login", "login", "log in to a server"),
    Choice("logout", "logout", "forget the login to a server"),
)


def _status(servers: SessionServers, server: McpServer) -> str:
    return one_line(exact(server.line), _MAX_LINE) if servers.is_on(server) else "off"


def _tokens(tools: Sequence[PricedTool]) -> str:
    if not tools:
        return ""
    size = f"{sum(tool.tokens for tool in tools):,}"
    return size if tools[0].is_offered else f"({size})"


def _server_table(servers: SessionServers) -> Table:
    rows = []
    for server in servers.all:
        tools = servers.tools.get(server.name, ())
        prompts, resources = len(server.offer.prompts), len(server.offer.resources)
        rows.append(
            (
                server.name,
                _status(servers, server),
                str(len(tools)) if tools else "",
                _tokens(tools),
                str(prompts) if prompts else "",
                str(resources) if resources else "",
                one_line(exact(server.config.described), _MAX_LINE),
            )
        )
    columns = (
        Column("server"),
        Column("state"),
        Column("tools", right=True),
        Column("tokens", right=True),
        Column("prompts", right=True),
        Column("resources", right=True),
        Column("started by, or at", spare=True),
    )
    return Table(columns, tuple(rows))


def _list(context: CommandContext) -> None:
    servers = context.chat.session.servers
    if not servers.all:
        context.say(
            "No MCP servers are configured: [mcp.servers.NAME] in the settings, "
            "mcp.json beside them, or .mcp.json in the folder."
        )
        return
    lead = ["/mcp NAME lists a server's tools; on, off, restart and login change it in this session."]
    if any(tools and not tools[0].is_offered for tools in servers.tools.values()):
        lead.append("Tokens in brackets are not in the request: search finds these tools (mcp.max_share).")
    context.show_tables("MCP servers", lead, [_server_table(servers)])


def _show(context: CommandContext, name: str) -> None:
    servers = context.chat.session.servers
    server, tools = servers.find(name), servers.tools.get(name, ())
    rows = tuple((tool.name, f"{tool.tokens:,}", one_line(exact(tool.own_name), 60)) for tool in tools)
    lead = [
        f"{_status(servers, server)}; from {one_line(exact(server.config.origin), _MAX_LINE)}",
        one_line(exact(server.config.described), _MAX_LINE),
        *(f"not offered: {one_line(exact(line), _MAX_LINE)}" for line in server.offer.unusable),
    ]
    tables = [Table((Column("tool"), Column("tokens", right=True), Column("its own name", spare=True)), rows)]
    if server.offer.prompts:
        prompts = tuple(
            (f"/{name}:{prompt.name}", one_line(exact(prompt.description), _MAX_LINE))
            for prompt in server.offer.prompts
        )
        tables.append(Table((Column("prompt"), Column("what it is", spare=True)), prompts))
    if server.offer.resources:
        resources = tuple(
            (f"@{name}:{one_line(exact(resource.uri), _MAX_LINE)}", one_line(exact(resource.name), 60))
            for resource in server.offer.resources
        )
        tables.append(Table((Column("resource"), Column("name", spare=True)), resources))
    context.show_tables(f"MCP server {name}", lead, tables)


async def _login(context: CommandContext, name: str) -> None:
    servers = context.chat.session.servers
    work = servers.login(name, context.open_address)
    line = await context.wait_for_task(work, f"logging in to {name}")
    context.say(line or f"Not logged in to {name}.")


async def _run(context: CommandContext, argument: str) -> None:
    word, _, name = argument.partition(" ")
    name, servers = name.strip(), context.chat.session.servers
    match word:
        case "":
            _list(context)
        case "on" | "off" if name:
            context.say(servers.switch(name, on=word == "on"))
        case "restart" if name:
            context.say(await servers.restart(name))
        case "login" if name:
            await _login(context, name)
        case "logout" if name:
            context.say(await servers.logout(name))
        case "on" | "off" | "restart" | "login" | "logout":
            context.say(f"/mcp {word} needs the name of a server; /mcp lists them.", warning=True)
        case _:
            _show(context, argument)


def _choices(context: CommandContext, before: str) -> Sequence[Choice]:
    servers = context.chat.session.servers
    names = [Choice(server.name, server.name, _status(servers, server)) for server in servers.all]
    if not before:
        return [*_WORDS, *names]
    return names if before in {word.value for word in _WORDS} else ()


MCP = Command(
    "mcp",
    "[on|off|login] [server]",
    "List the MCP servers with their tools; switch one on or off, or log in to it",
    _run,
    while_busy=True,
    arguments=Arguments(_choices),
)
