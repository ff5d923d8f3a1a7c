"""/fork: continue in a copy of this session."""

from __future__ import annotations

from rolling_chat.commands.base import Command, CommandContext


async def _run(context: CommandContext, _argument: str) -> None:
    before = context.chat.session.info.short
    await context.chat.enter(context.chat.next.copy)
    context.reload()
    context.say(f"This is a copy of session {before}, which stays as it was.")


FORK = Command("fork", "", "Go on in a copy of this session", _run)
