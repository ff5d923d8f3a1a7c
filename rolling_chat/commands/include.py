"""/include: send excluded messages again."""

from __future__ import annotations

from rolling_chat.agent import PinChange
from rolling_chat.commands.base import Choice, Command, CommandContext, first_word
from rolling_chat.commands.pinning import USAGE, change_pins, entry_choices, pick_entry


def _choices(context: CommandContext) -> list[Choice]:
    return entry_choices(context.chat.session.pins.listed().excluded)


async def _run(context: CommandContext, argument: str) -> None:
    if argument:
        change_pins(context, PinChange.INCLUDE, argument)
    else:
        await pick_entry(context, PinChange.INCLUDE, context.chat.session.pins.listed().excluded)


INCLUDE = Command(
    "include", USAGE, "Send an excluded message again", _run, while_busy=True, arguments=first_word(_choices)
)
