"""/summary: read and edit the summary of older messages."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rolling_chat import figures
from rolling_chat.commands.base import Command, CommandContext

if TYPE_CHECKING:
    from rolling_chat.agent import Chat, StoredSummary

_NONE = "There is no summary yet: one is made when older messages have to leave, and /compact makes one now."
_MAKERS = {"extract": "extracted by rule", "you": "edited by you"}


def covers(summary: StoredSummary) -> str:
    """Return a description of the messages that a summary covers."""
    first = f"the first {figures.plural(summary.place, 'message')}"
    return first if not summary.skipped else f"{summary.covers:,} of {first}"


def describe(chat: Chat, summary: StoredSummary) -> str:
    """Return what the summary covers, who made it and when, and whether the next request contains it."""
    at = datetime.fromtimestamp(summary.created_at).astimezone()
    made = _MAKERS.get(summary.made_by, f"made by {summary.made_by}")
    if chat.session.summaries.is_active:
        state = "in the prompt"
    elif chat.session.rolling:
        state = "ready; it comes in when something has to leave"
    else:
        state = "not used while rolling context is off"
    which = covers(summary)
    return f"covers {which} · ~{summary.tokens_after:,} tokens · {made}, {at:%d %B %H:%M} · {state}"


async def _run(context: CommandContext, _argument: str) -> None:
    summaries = context.chat.session.summaries
    current = summaries.current
    if current is None:
        context.say(_NONE)
        return
    text = await context.edit("Summary", describe(context.chat, current), current.text)
    if text is None or text.strip() == current.text:
        return
    summaries.edit(text)
    context.refresh_report()
    edited = summaries.current
    size, limit = edited.tokens_after if edited else 0, summaries.max_tokens
    cut = f" It is ~{size:,} tokens long; only the lines within {limit:,} are sent." if size > limit else ""
    context.say(f"The summary is as you wrote it, from the next request on; /compact undo goes back.{cut}")


SUMMARY = Command("summary", "", "Read and edit the summary of older messages", _run)
