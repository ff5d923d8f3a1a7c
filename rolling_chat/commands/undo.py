"""/undo: undo the newest turn."""

from __future__ import annotations

from rolling_chat import figures
from rolling_chat.agent import as_typed
from rolling_chat.commands.base import Command, CommandContext
from rolling_chat.commands.going_back import go_back

_WHERE = {
    True: "; its text is back in the prompt box",
    False: "; its text is not put into the prompt box, which is in use",
    None: "",
}


async def _run(context: CommandContext, _argument: str) -> None:
    await context.stop_turn()
    session = context.chat.session
    number, messages = len(session.history.turns()), []
    head = session.history.before_newest_turn()
    if not await go_back(context, "Take back", head, lambda: messages.append(session.history.undo())):
        return
    taken = messages[0]
    where = _WHERE[context.offer_draft(as_typed(taken))]
    left = figures.plural(number - 1, "turn")
    context.say(f"Took back turn {number}; {left} left. Nothing is deleted: /redo brings it back{where}.")


UNDO = Command(
    "undo", "", "Take back the newest turn; its text returns to the prompt box", _run, while_busy=True
)
