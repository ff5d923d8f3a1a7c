"""Find the lines of messages dropped from the prompt that the summary does not mention."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rolling_chat.agent.conversation import Conversation
from rolling_chat.agent.errors import ChatError
from rolling_chat.context import Fate, PromptReport, Summary, count_tokens
from rolling_chat.context.summary_left_out import LeftOutLine, left_out, with_line
from rolling_chat.context.summary_pass import MAX_LATER, texts_of
from rolling_chat.messages import Message
from rolling_chat.providers.background_thread import in_background

_MISSING = frozenset({Fate.SUMMARIZED, Fate.OMITTED})
_MAX_MESSAGES = 3_000  # the newest of the branch; nothing is listed of older ones

Indexed = list[tuple[int, Message]]


async def left_out_of(
    conversation: Conversation, summary: Summary, report: PromptReport
) -> list[LeftOutLine]:
    """Return what a summary does not mention of the messages that it covers, the most needed first.

    `report` is that of a request with this summary; messages that the user excluded are not listed.
    """
    known = _newest(conversation)
    covered = [
        (index, message)
        for index, message in known
        if summary.covers(index, index) and report.rows[index].fate is not Fate.EXCLUDED
    ]
    return await _ranked(covered, summary.text, known)


async def lost_lines(conversation: Conversation, summary: str, report: PromptReport) -> list[LeftOutLine]:
    """Return what `summary` does not mention of the messages that are missing from the next request.

    `report` is that of the next request.
    """
    known = _newest(conversation)[: len(report.rows)]
    missing = [(index, message) for index, message in known if report.rows[index].fate in _MISSING]
    return await _ranked(missing, summary, known)


def with_line_added(summary: str, line: LeftOutLine, cap: int, model: str) -> str:
    """Return a summary with one more line. Raises ChatError if that has more than `cap` tokens."""
    text = with_line(summary, line, cap, partial(count_tokens, model=model))
    if not text:
        size = count_tokens(summary, model)
        raise ChatError(
            f"The line does not fit: the summary has ~{size:,} of {cap:,} tokens; /summary shortens it."
        )
    return text


def is_there(conversation: Conversation, line: LeftOutLine) -> bool:
    """Return whether the message of a line is still at its index; the branch may have changed."""
    return (line.index, line.message_id) in ((index, one.id) for index, one in _newest(conversation))


def _newest(conversation: Conversation) -> Indexed:
    """Return the newest messages read, each with its index in the prompt; the system message has index 0."""
    newest = conversation.recent[-_MAX_MESSAGES:]
    return list(enumerate(newest, len(conversation.branch) - len(newest) + 1))


async def _ranked(missing: Indexed, summary: str, known: Sequence[tuple[int, Message]]) -> list[LeftOutLine]:
    if not missing:
        return []
    later = [message for index, message in known if index > missing[-1][0]][:MAX_LATER]
    return await in_background(partial(left_out, missing, summary, texts_of(later)))
