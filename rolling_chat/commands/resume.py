"""/resume: open a saved session."""

from __future__ import annotations

import time
from dataclasses import replace

from rolling_chat.commands.base import Choice, Command, CommandContext, first_word
from rolling_chat.commands.sessions import open_session, pick_session, session_choices


def _choices(context: CommandContext) -> list[Choice]:
    here = context.chat.session.info.id
    others = [info for info in context.chat.saved.offered() if info.id != here]
    choices = session_choices(others, time.time())
    return [replace(choice, value=info.short) for choice, info in zip(choices, others, strict=True)]


async def _run(context: CommandContext, argument: str) -> None:
    if argument:
        await open_session(context, argument)
    else:
        await pick_session(context)


RESUME = Command(
    "resume", "[id]", "Open a saved session by the start of its id", _run,
    arguments=first_word(_choices, closed=True),
)  # fmt: skip
