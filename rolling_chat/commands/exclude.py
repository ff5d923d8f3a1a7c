"""/exclude: keep a turn, an iteration, an answer or a result out of the prompt."""

from __future__ import annotations

from rolling_chat.agent import PinChange
from rolling_chat.commands.base import Choice, Command, CommandContext
from rolling_chat.commands.context import preview
from rolling_chat.commands.pinning import USAGE, change_pins
from rolling_chat.tools.memory import speaker_of

_MOST_OFFERED = 500


async def _run(context: CommandContext, argument: str) -> None:
    chosen = argument or await _pick(context)
    if chosen:
        change_pins(context, PinChange.EXCLUDE, chosen)


async def _pick(context: CommandContext) -> str | None:
    """Let the person choose among the messages that are sent, the newest first."""
    chat = context.chat
    gone = chat.pins.held.excluded
    sent = [(place, message) for place, message in enumerate(chat.messages, 1) if message.id not in gone]
    choices = [
        Choice(f"r{place}", f"r{place} · {preview(message)}", speaker_of(message))
        for place, message in sent[: -_MOST_OFFERED - 1 : -1]
    ]
    if not choices:
        context.say("There is nothing to exclude on this branch.")
        return None
    return await context.pick("Keep out of the prompt", choices)


EXCLUDE = Command(
    "exclude", USAGE, "Keep a turn, an answer or a result out of the prompt", _run, while_busy=True
)
