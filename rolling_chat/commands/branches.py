"""/branches: list the branches that the head was moved away from, and go to one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.commands.base import Choice, Command, CommandContext
from rolling_chat.commands.going_back import go_back

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rolling_chat.agent import LeftBranch


def branch_choices(branches: Iterable[LeftBranch], now: float) -> list[Choice]:
    """Return one entry per branch: its first user message, size and age. `now` is in seconds."""
    return [
        Choice(
            branch.head,
            branch.begins or "(no text)",
            figures.plural(branch.messages, "message")
            + (f" · {figures.age(now - branch.written_at)}" if branch.written_at else ""),
        )
        for branch in branches
    ]


async def _run(context: CommandContext, _argument: str) -> None:
    branches = await context.chat.apart(context.chat.session.history.branches)
    choices = branch_choices(branches, time.time())
    if not choices:
        context.say("This session has no other branch: nothing was undone, rewound or retried in it.")
        return
    chosen = await context.pick("Branches that were left", choices)
    if not chosen:
        return
    session = context.chat.session
    head = await context.chat.apart(lambda: session.history.end_of(chosen))
    if not await go_back(context, "Go to the branch", head, lambda: session.history.go_to(chosen)):
        return
    context.say("This is the branch as it was left; /redo returns to the other.")


BRANCHES = Command(
    "branches", "", "List the branches that you left with /undo or /rewind, and go to one", _run
)
