"""List the newest messages about the subject of a search, whatever words they use.

Facts that change are often repeated in other words, so that the best hits may be outdated. Therefore the
newest messages with the most specific part of the question, a name or its rarest word, follow the hits.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from rolling_chat.message_lines import speaker_of
from rolling_chat.messages import Message
from rolling_chat.search_terms import fold
from rolling_chat.text import one_line
from rolling_chat.tools.memory_search import telling_part

_MAX_LISTED = 10  # messages
_MAX_EXAMINED = 400  # messages
_SHOWN = 240  # characters of the sentences with the part
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


def newest_mentions(
    branch: Sequence[Message],
    question: str,
    indexes: Collection[int],
    hidden: Collection[int],
    shown: str,
) -> list[str]:
    """Return a heading and a line for each of the newest messages, newest first; nothing if there are none.

    Only messages at `indexes` and not in `hidden` are listed, without tool results and their calls. Text that
    is already in `shown` is not repeated.
    """
    part, holders = telling_part(branch, question, indexes, hidden)
    lines: list[str] = []
    for index in holders[:_MAX_EXAMINED]:
        text = _sentences(branch[index - 1], part)
        if text and text not in shown:
            lines.append(f"r{index} {speaker_of(branch[index - 1])}: {text}")
        if len(lines) == _MAX_LISTED:
            break
    return [f"[newest with {one_line(part, 60)!r}, newest first]", *lines] if lines else []


def _sentences(message: Message, part: str) -> str:
    """Return the sentences that contain the part, as many as fit."""
    text = ""
    for sentence in _with_part(message.prose, part):
        extended = f"{text} … {sentence}" if text else sentence
        if text and len(extended) > _SHOWN:
            break
        text = extended
    return one_line(text, _SHOWN)


def _with_part(text: str, part: str) -> Iterator[str]:
    for sentence in _SENTENCE_END.split(text):
        if part in fold(sentence):
            yield sentence.strip()
