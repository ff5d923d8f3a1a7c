"""The prompts of MCP servers as slash commands: `/server:prompt`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rolling_chat.agent.server_prompts import called_prompts, insert_prompt
from rolling_chat.commands.base import Command, CommandContext
from rolling_chat.text import exact, one_line

if TYPE_CHECKING:
    from collections.abc import Collection

    from rolling_chat.agent import Chat
    from rolling_chat.agent.server_prompts import CalledPrompt

_MAX_SUMMARY = 100  # characters


def prompt_commands(chat: Chat, taken: Collection[str]) -> tuple[Command, ...]:
    """Return a command for each prompt of the session's servers whose name is not `taken`."""
    return tuple(
        _command(called) for called in called_prompts(chat.session.servers) if called.name not in taken
    )


def _command(called: CalledPrompt) -> Command:
    usage = one_line(exact(called.usage), _MAX_SUMMARY)
    summary = one_line(exact(called.prompt.description), _MAX_SUMMARY)
    whose = f"(MCP server {called.server.name})"
    return Command(called.name, usage, f"{summary} {whose}".strip(), partial(_run, called=called))


async def _run(context: CommandContext, argument: str, *, called: CalledPrompt) -> None:
    inserted = await context.wait_for_task(insert_prompt(called, argument), f"asking {called.server.name}")
    if inserted is None:
        context.say(f"Not sent: /{called.name} was canceled.")
        return
    await context.send(f"/{called.name} {argument}".rstrip(), [inserted])
