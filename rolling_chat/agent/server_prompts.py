"""Turn the prompts of MCP servers into messages of the user's."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from rolling_chat.agent.errors import ChatError
from rolling_chat.agent.session_servers import SessionServers
from rolling_chat.agent.turn.attaching import Insertion
from rolling_chat.mentions import without_marks
from rolling_chat.tools.mcp.peer import ServerError
from rolling_chat.tools.mcp.results import prompt_text
from rolling_chat.tools.mcp.server import McpServer, ServerPrompt

_NOT_IN_COMMANDS = re.compile(r"[^a-z0-9_-]+")
_NAMED = re.compile(r"(\w[\w.-]*)=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CalledPrompt:
    """A prompt of a server as a slash command, with its name and arguments."""

    server: McpServer
    prompt: ServerPrompt

    @property
    def name(self) -> str:
        """The command's name, such as `files:review`."""
        return ":".join(
            _NOT_IN_COMMANDS.sub("-", part.lower()) for part in (self.server.name, self.prompt.name)
        )

    @property
    def usage(self) -> str:
        """The arguments, with optional ones in brackets."""
        return " ".join(one.name if one.required else f"[{one.name}]" for one in self.prompt.arguments)


def called_prompts(servers: SessionServers) -> list[CalledPrompt]:
    """Return the prompts of the servers that are on; of several with the same name, the first."""
    found: dict[str, CalledPrompt] = {}
    for server in servers.all:
        if servers.is_on(server):
            for prompt in server.offer.prompts:
                called = CalledPrompt(server, prompt)
                found.setdefault(called.name, called)
    return list(found.values())


async def insert_prompt(called: CalledPrompt, argument: str) -> Insertion:
    """Return what a prompt adds to a message that calls it. Raises ChatError."""
    try:
        arguments = read_arguments(called.prompt, argument)
    except ValueError as error:
        raise ChatError(f"Not sent: {error}, as in /{called.name} {called.usage}".rstrip() + ".") from error
    try:
        result = await called.server.get_prompt(called.prompt.name, arguments)
    except ServerError as error:
        raise ChatError(f"The MCP server {called.server.name} {error}.") from error
    text = without_marks(prompt_text(result, called.server.name))
    if not text.strip():
        raise ChatError(f"Not sent: the prompt /{called.name} is empty.")
    return Insertion(called.name, "prompt", f"The prompt /{called.name}, which I call, says:\n\n{text}")


def read_arguments(prompt: ServerPrompt, text: str) -> Mapping[str, str]:
    """Parse the arguments of a prompt from typed text: words in order, or `name=value`.

    The last argument gets all remaining words. Raises ValueError if a required one is missing.
    """
    names = [argument.name for argument in prompt.arguments]
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    given: dict[str, str] = {}
    plain: list[str] = []
    for word in words:
        match = _NAMED.fullmatch(word)
        if match and match[1] in names:
            given[match[1]] = match[2]
        else:
            plain.append(word)
    unnamed = [name for name in names if name not in given]
    for index, name in enumerate(unnamed):
        if not plain:
            break
        is_last = index == len(unnamed) - 1
        given[name] = " ".join(plain) if is_last else plain.pop(0)
        plain = [] if is_last else plain
    missing = [one.name for one in prompt.arguments if one.required and one.name not in given]
    if missing:
        raise ValueError(f"it needs {', '.join(missing)}")
    if plain:
        raise ValueError("it takes no arguments" if not names else "it takes no more arguments")
    return given
