"""/help: show the keys and the commands."""

from __future__ import annotations

from rolling_chat.commands.base import Command, CommandContext


def _run(context: CommandContext, _argument: str) -> None:
    context.show_help()


HELP = Command("help", "", "Keys and commands", _run, while_busy=True)
