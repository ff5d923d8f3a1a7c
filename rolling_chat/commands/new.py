"""/new: begin a new session in this folder."""

from __future__ import annotations

from rolling_chat.commands.base import Command, CommandContext


async def _run(context: CommandContext, _argument: str) -> None:
    before = context.chat.session.resume_command if context.chat.session.conversation.recent else ""
    await context.chat.enter(context.chat.next.new)
    context.reload()
    if before:
        context.say(f"A new session. The one before is kept: {before}")


NEW = Command("new", "", "Begin a new session; this one is kept", _run)
