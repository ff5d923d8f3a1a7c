"""/copy: put the last answer on the clipboard."""

from __future__ import annotations

from rolling_chat.commands import figures
from rolling_chat.commands.base import Command, CommandContext


def _run(context: CommandContext, _argument: str) -> None:
    answers = (message.text for message in reversed(context.chat.messages) if message.role == "assistant")
    answer = next((text for text in answers if text.strip()), "")
    if not answer:
        context.say("There is no answer to copy yet.")
        return
    context.copy(answer)
    context.say(f"Copied the last answer ({figures.plural(len(answer), 'character')}).")


COPY = Command("copy", "", "Copy the last answer to the clipboard", _run, while_busy=True)
