"""/retry: answer the last message again."""

from __future__ import annotations

from rolling_chat.commands.base import Command, CommandContext
from rolling_chat.commands.going_back import go_back


async def _run(context: CommandContext, _argument: str) -> None:
    await context.stop_turn()
    session = context.chat.session
    count = len(session.messages)
    turns = session.history.turns()
    head = turns[-1].message.id if turns else session.head
    if not await go_back(context, "Answer again", head, session.history.retake):
        return
    if len(session.messages) < count:
        context.say("Answering again; the answer before is kept: /branches goes to it.")
    if session.permissions.policy != "plan" and session.plan_mode.note:
        context.say("That message was sent in plan mode, and says so: send it anew to have it carried out.")
    await context.carry_on()


RETRY = Command("retry", "", "Answer your last message again; the old answer is kept", _run, while_busy=True)
