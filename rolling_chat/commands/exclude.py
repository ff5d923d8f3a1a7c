"""/exclude: keep a turn, an iteration, an answer or a result out of the prompt."""

from __future__ import annotations

from rolling_chat.agent import PinChange
from rolling_chat.commands.base import Command, CommandContext, first_word
from rolling_chat.commands.pinning import USAGE, change_pins, id_choices, message_choices


async def _run(context: CommandContext, argument: str) -> None:
    chosen = argument or await _pick(context)
    if chosen:
        change_pins(context, PinChange.EXCLUDE, chosen)


async def _pick(context: CommandContext) -> str | None:
    """Let the user choose one of the messages that are sent, newest first."""
    choices = message_choices(context)
    if not choices:
        context.say("There is nothing to exclude on this branch.")
        return None
    return await context.pick("Keep out of the prompt", choices)


EXCLUDE = Command(
    "exclude", USAGE, "Keep a turn, an answer or a result out of the prompt", _run, while_busy=True,
    arguments=first_word(id_choices),
)  # fmt: skip
