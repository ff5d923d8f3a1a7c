"""/retry: answer the last message again."""

from __future__ import annotations

from rolling_chat.commands.base import Command, CommandContext


async def _run(context: CommandContext, _argument: str) -> None:
    await context.stop_turn()
    before = context.chat.session.messages
    count = len(before)
    context.chat.session.history.retake()
    context.reload()
    if len(context.chat.session.messages) < count:
        context.say("Answering again; the answer before is kept: /branches goes to it.")
    await context.carry_on()


RETRY = Command("retry", "", "Answer your last message again; the old answer is kept", _run, while_busy=True)
