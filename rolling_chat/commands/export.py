"""/export: write the session to a file."""

from __future__ import annotations

from rolling_chat import figures
from rolling_chat.agent import EXPORT_FORMATS
from rolling_chat.commands.base import Choice, Command, CommandContext, first_word


def _choices(_context: CommandContext) -> list[Choice]:
    return [Choice(name, name, f".{ending}") for name, ending in EXPORT_FORMATS.items()]


async def _run(context: CommandContext, argument: str) -> None:
    chat = context.chat
    if not chat.session.messages:
        context.say("There is nothing to export yet.")
        return
    path = await context.wait_for(lambda _: chat.session.export(argument), "writing the session to a file")
    if path is None:
        context.say("The session is still being written to its file.")
        return
    context.say(f"Wrote {figures.plural(len(chat.session.messages), 'message')} to {path}")


EXPORT = Command(
    "export", "[format|file]", "Write the session to a file: markdown, html, json or jsonl", _run,
    while_busy=True, arguments=first_word(_choices),
)  # fmt: skip
