"""/quit: quit the program."""

from __future__ import annotations

from rolling_chat.commands.base import Command, CommandContext


def _run(context: CommandContext, _argument: str) -> None:
    context.quit()


QUIT = Command("quit", "", "Quit; the session is kept", _run, while_busy=True)
