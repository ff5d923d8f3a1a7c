"""/rewind: go back to before one of the user's messages, to edit it and continue from there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.agent import as_typed
from rolling_chat.commands.base import Choice, Command, CommandContext, first_word
from rolling_chat.commands.context import preview
from rolling_chat.commands.going_back import go_back

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rolling_chat.agent import SaidTurn

_IN_USE = "; its text is not put into the prompt box, which is in use"


def turn_choices(turns: Iterable[SaidTurn], now: float) -> list[Choice]:
    """Return one entry per turn, newest first: its beginning, number and age. `now` is in seconds."""
    choices = []
    for turn in turns:
        message = turn.message
        age = f" · {figures.age(now - message.created_at)}" if message.created_at else ""
        choices.append(Choice(message.id, preview(message) or "(no text)", f"turn {turn.number}{age}"))
    return choices[::-1]


def _numbers(context: CommandContext) -> list[Choice]:
    turns = context.chat.session.history.turns()
    shown = turn_choices(turns, time.time())
    numbers = range(len(shown), 0, -1)
    return [Choice(str(number), one.label, one.note) for number, one in zip(numbers, shown, strict=True)]


async def _run(context: CommandContext, argument: str) -> None:
    turns = context.chat.session.history.turns()
    if not turns:
        context.say("There is nothing to go back to: this branch has no message of yours.", warning=True)
        return
    if not argument:
        chosen = await context.pick("Go back to before", turn_choices(turns, time.time()))
    elif argument.isdecimal() and 0 < int(argument) <= len(turns):
        chosen = turns[int(argument) - 1].message.id
    else:
        context.say(f"/rewind takes the number of a turn, 1 to {len(turns)}, not {argument!r}.", warning=True)
        return
    if not chosen:
        return
    await context.stop_turn()
    number = next((turn.number for turn in turns if turn.message.id == chosen), 0)
    session, messages = context.chat.session, []
    head = session.history.before(chosen)
    if not await go_back(context, "Go back", head, lambda: messages.append(session.history.rewind(chosen))):
        return
    message = messages[0]
    where = _IN_USE if context.offer_draft(as_typed(message)) is False else ""
    context.say(
        f"Back to before turn {number}: edit your message and send it{where}. "
        "Nothing is deleted: /redo returns, /branches lists what was left."
    )


REWIND = Command(
    "rewind", "[turn]", "Go back to before a message of yours, to edit it and go on from there", _run,
    while_busy=True, arguments=first_word(_numbers),
)  # fmt: skip
