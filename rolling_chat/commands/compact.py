"""/compact: summarize older messages now, after a preview; and undo that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.agent.memory.summaries import refused_line
from rolling_chat.commands.base import Command, CommandContext
from rolling_chat.commands.summary import covers

if TYPE_CHECKING:
    from rolling_chat.agent import Proposal


async def _run(context: CommandContext, argument: str) -> None:
    if argument.lower() == "undo":
        _undo(context)
        return
    proposal = await context.chat.session.summaries.propose(argument)
    question = f"{_covers(proposal)}; {_saves(proposal)}."
    if proposal.refused:
        question += f" {refused_line(proposal.refused)}."
    if not await context.confirm("A summary to take or leave", question, proposal.summary.text, "take it"):
        context.say("The summary was left; nothing was changed.")
        return
    context.chat.session.summaries.take(proposal)
    context.refresh_report()
    context.say(f"{_covers(proposal)}, from the next request on; /compact undo goes back.")


def _undo(context: CommandContext) -> None:
    before = context.chat.session.summaries.undo()
    context.refresh_report()
    if before is None:
        context.say("Went back: no summary stands for older messages now.")
    else:
        context.say(
            f"Went back to the summary before; it stands for {figures.plural(before.covers, 'message')}."
        )


def _covers(proposal: Proposal) -> str:
    return f"The summary stands for {covers(proposal.summary)} of this session"


def _saves(proposal: Proposal) -> str:
    before, after = proposal.before.token_count, proposal.after.token_count
    return f"the next request goes from ~{before:,} to ~{after:,} tokens"


COMPACT = Command(
    "compact",
    "[what to keep in mind|undo]",
    "Summarize older messages now, with a preview; undo returns to the one before",
    _run,
)
