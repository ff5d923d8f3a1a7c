"""/resume: open a saved session."""

from __future__ import annotations

from rolling_chat.commands.base import Command, CommandContext
from rolling_chat.commands.sessions import open_session, pick_session


async def _run(context: CommandContext, argument: str) -> None:
    if argument:
        open_session(context, argument)
    else:
        await pick_session(context)


RESUME = Command("resume", "[id]", "Open a saved session by the start of its id", _run)
