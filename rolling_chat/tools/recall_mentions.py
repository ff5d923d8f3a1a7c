"""What was said last about the thing that a search asks for, whatever words it was said in.

What changes is often said again in other words: the first hits are then those that are no longer true. So the
newest messages with the most telling part of the question, a name or its rarest word, are listed below them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from rolling_chat.message_lines import speaker_of
from rolling_chat.messages import Message
from rolling_chat.search_terms import fold
from rolling_chat.text import one_line
from rolling_chat.tools.memory_search import telling_part

_MOST = 10  # messages
_MAX_LOOKED_AT = 400  # messages that are read for it
_SHOWN = 240  # characters of a message: the sentences with the part
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")


def newest_mentions(
    branch: Sequence[Message],
    question: str,
    indexes: Collection[int],
    hidden: Collection[int],
    shown: str,
) -> list[str]:
    """Return a heading and a line for each of the newest messages, newest first; nothing if there is none.

    Those at `indexes` may be named, those `hidden` may not, nor are results of tools and their calls. What is
    `shown` above is not said again.
    """
    part, holders = telling_part(branch, question, indexes, hidden)
    lines: list[str] = []
    for index in holders[:_MAX_LOOKED_AT]:
        said = _sentences(branch[index - 1], part)
        if said and said not in shown:
            lines.append(f"r{index} {speaker_of(branch[index - 1])}: {said}")
        if len(lines) == _MOST:
            break
    return [f"[newest with {one_line(part, 60)!r}, newest first]", *lines] if lines else []


def _sentences(message: Message, part: str) -> str:
    """Return the sentences that have the part, as many as are shown."""
    kept = ""
    for sentence in _with_part(message.prose, part):
        longer = f"{kept} … {sentence}" if kept else sentence
        if kept and len(longer) > _SHOWN:
            break
        kept = longer
    return one_line(kept, _SHOWN)


def _with_part(text: str, part: str) -> Iterator[str]:
    for sentence in _SENTENCE_END.split(text):
        if part in fold(sentence):
            yield sentence.strip()
