"""/export: write the session to a file."""

from __future__ import annotations

from rolling_chat.commands import figures
from rolling_chat.commands.base import Command, CommandContext


def _run(context: CommandContext, argument: str) -> None:
    chat = context.chat
    if not chat.messages:
        context.say("There is nothing to export yet.")
        return
    path = chat.export(argument)
    context.say(f"Wrote {figures.plural(len(chat.messages), 'message')} to {path}")


EXPORT = Command(
    "export", "[format|file]", "Write the session to a file: markdown, html, json or jsonl", _run,
    while_busy=True,
)  # fmt: skip
