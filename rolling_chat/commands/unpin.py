"""/unpin: let what was pinned leave the prompt again."""

from __future__ import annotations

from rolling_chat.agent import PinChange
from rolling_chat.commands.base import Command, CommandContext
from rolling_chat.commands.pinning import USAGE, change_pins, pick_entry


async def _run(context: CommandContext, argument: str) -> None:
    if argument:
        change_pins(context, PinChange.UNPIN, argument)
    else:
        await pick_entry(context, PinChange.UNPIN, context.chat.pins.listed().pinned)


UNPIN = Command("unpin", USAGE, "Let what was pinned leave the prompt again", _run, while_busy=True)
