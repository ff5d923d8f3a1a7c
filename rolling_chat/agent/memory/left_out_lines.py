"""What was lost: what the messages that left the prompt mention, and the summary does not."""

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

_GONE = frozenset({Fate.SUMMARIZED, Fate.OMITTED})
_MAX_MESSAGES = 3_000  # the newest of the branch: of older ones nothing is listed

Indexed = list[tuple[int, Message]]


async def left_out_of(
    conversation: Conversation, summary: Summary, report: PromptReport
) -> list[LeftOutLine]:
    """Return what a summary does not mention of the messages that it stands for, the most needed first.

    `report` is that of a request with this summary: what the user excluded is not listed.
    """
    known = _newest(conversation)
    gone = [
        (index, message)
        for index, message in known
        if summary.covers(index, index) and report.rows[index].fate is not Fate.EXCLUDED
    ]
    return await _ranked(gone, summary.text, known)


async def lost_lines(conversation: Conversation, summary: str, report: PromptReport) -> list[LeftOutLine]:
    """Return what the messages mention that are not in the next request, and `summary` does not.

    `report` is that of the next request.
    """
    known = _newest(conversation)[: len(report.rows)]
    gone = [(index, message) for index, message in known if report.rows[index].fate in _GONE]
    return await _ranked(gone, summary, known)


def longer(summary: str, line: LeftOutLine, cap: int, model: str) -> str:
    """Return a summary with one line more. Raises ChatError where it has no room for it."""
    text = with_line(summary, line, cap, partial(count_tokens, model=model))
    if not text:
        size = count_tokens(summary, model)
        raise ChatError(
            f"The line does not fit: the summary has ~{size:,} of {cap:,} tokens; /summary shortens it."
        )
    return text


def is_there(conversation: Conversation, line: LeftOutLine) -> bool:
    """Return whether the message of a line is still where it was: the branch may be another one by now."""
    return (line.index, line.message_id) in ((index, one.id) for index, one in _newest(conversation))


def _newest(conversation: Conversation) -> Indexed:
    """The newest messages that were read, by their index in the prompt: the system message has index 0."""
    newest = conversation.recent[-_MAX_MESSAGES:]
    return list(enumerate(newest, len(conversation.branch) - len(newest) + 1))


async def _ranked(gone: Indexed, summary: str, known: Sequence[tuple[int, Message]]) -> list[LeftOutLine]:
    if not gone:
        return []
    later = [message for index, message in known if index > gone[-1][0]][:MAX_LATER]
    return await in_background(partial(left_out, gone, summary, texts_of(later)))
