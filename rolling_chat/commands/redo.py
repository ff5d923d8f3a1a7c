"""/redo: reverse an undo, a rewind or a change of branch."""

from __future__ import annotations

from rolling_chat import figures
from rolling_chat.commands.base import Command, CommandContext
from rolling_chat.commands.going_back import go_back


async def _run(context: CommandContext, _argument: str) -> None:
    session = context.chat.session
    target = session.history.redo_target()
    head = session.head if target is None else target
    if not await go_back(context, "Redo", head, session.history.redo):
        return
    count = figures.plural(len(context.chat.session.messages), "message")
    context.say(f"Back where you were: {count} on this branch.")


REDO = Command("redo", "", "Take back an undo or a rewind, until you send another message", _run)
