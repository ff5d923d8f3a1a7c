"""/redo: take back an undo, a rewind or a change of branch."""

from __future__ import annotations

from rolling_chat import figures
from rolling_chat.commands.base import Command, CommandContext


def _run(context: CommandContext, _argument: str) -> None:
    context.chat.session.history.redo()
    context.reload()
    count = figures.plural(len(context.chat.session.messages), "message")
    context.say(f"Back where you were: {count} on this branch.")


REDO = Command("redo", "", "Take back an undo or a rewind, until you send another message", _run)
