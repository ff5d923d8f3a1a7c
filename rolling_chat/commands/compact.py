"""/compact: summarize older messages now, with a preview; undo returns to the previous summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.agent import ChatError
from rolling_chat.agent.memory.proposal import refused_line
from rolling_chat.commands.base import Command, CommandContext
from rolling_chat.commands.lost import pick_line
from rolling_chat.commands.summary import covers
from rolling_chat.text import one_line

if TYPE_CHECKING:
    from rolling_chat.agent import Proposal

_MAX_NAMED = 6  # left-out names in the question


async def _run(context: CommandContext, argument: str) -> None:
    if argument.lower() == "undo":
        _undo(context)
        return
    proposal = await context.chat.session.summaries.propose(argument)
    while not await _agreed(context, proposal):
        line = await pick_line(
            context, "What the summary leaves out: choose a line to put in", proposal.left_out
        )
        if line is not None:
            try:
                proposal = context.chat.session.left_out.put_in(proposal, line)
            except ChatError as error:
                context.say(str(error), warning=True)


async def _agreed(context: CommandContext, proposal: Proposal) -> bool:
    """Ask whether to use the summary, and do so; return False if the user wants to add a line first."""
    other = "what it leaves out" if proposal.left_out else ""
    title, text = "Use this summary?", proposal.summary.text
    is_taken = await context.confirm(title, _question(proposal), text, "use it", other)
    if is_taken is None:
        return False
    if not is_taken:
        context.say("The summary was not used; nothing was changed.")
        return True
    context.chat.session.summaries.take(proposal)
    context.refresh_report()
    context.say(f"{_covers(proposal)}, from the next request on; /compact undo goes back.")
    return True


def _undo(context: CommandContext) -> None:
    before = context.chat.session.summaries.undo()
    context.refresh_report()
    if before is None:
        context.say("Undone: there is no summary of older messages now.")
    else:
        context.say(f"Restored the previous summary; it covers {figures.plural(before.covers, 'message')}.")


def _question(proposal: Proposal) -> str:
    parts = [f"{_covers(proposal)}; {_saves(proposal)}."]
    if proposal.refused:
        parts.append(f"{refused_line(proposal.refused)}.")
    names = [one_line(name, 40) for line in proposal.left_out for name in line.names]
    if names:
        more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
        parts.append(f"It does not mention {', '.join(names[:_MAX_NAMED])}{more}.")
    return " ".join(parts)


def _covers(proposal: Proposal) -> str:
    return f"The summary covers {covers(proposal.summary)} of this session"


def _saves(proposal: Proposal) -> str:
    before, after = proposal.before.token_count, proposal.after.token_count
    return f"the next request goes from ~{before:,} to ~{after:,} tokens"


COMPACT = Command(
    "compact",
    "[what to keep in mind|undo]",
    "Summarize older messages now, with a preview; undo returns to the one before",
    _run,
)
