"""Fold one chunk of messages into a summary: read the answer, judge it, correct it once and complete it."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from rolling_chat.context.count_memo import CountText
from rolling_chat.context.summary_grounding import (
    Expected,
    Source,
    Verdict,
    expect,
    foreign_lines,
    judge,
    names_used,
    plain_name,
)
from rolling_chat.context.summary_request import (
    Chunk,
    SummaryOptions,
    correction_text,
    is_of_the_request,
    rejection_of,
    without_labels,
)
from rolling_chat.context.summary_sections import (
    FACTS,
    NO_HEADING,
    Sections,
    Worth,
    extended,
    fitted,
    read_sections,
    shortened,
)
from rolling_chat.context.summary_text import without_end_marker
from rolling_chat.messages import Message
from rolling_chat.search_terms import content_stems

Wording: TypeAlias = Callable[[str, str, SummaryOptions], str]
"""Compose a summary request from the summary so far, the messages as text, and the options."""

MAX_LATER = 60
"""How many messages after the summarized ones show what was needed again."""

_LATER_CHARS = 4_000
_MAX_PART = 20_000  # characters of a message that are searched for names used later
_MAX_COMPLETED = 160  # characters of a sentence that is copied word for word
_SENTENCE = re.compile(r"[^\n]+?(?:[.!?](?=\s)|[。！？]|\n|\Z)")
_LABEL = re.compile(r"^(?:User|Assistant): ")


def texts_of(later: Sequence[Message]) -> list[str]:
    """Return the texts and call arguments of later messages, which show what was needed again; no results."""
    texts = []
    for message in later[:MAX_LATER]:
        if message.role in ("user", "assistant"):
            calls = (call.arguments[:_LATER_CHARS] for call in message.tool_calls)
            texts.append("\n".join((message.text[:_LATER_CHARS], *calls)))
    return texts


class _Judged(NamedTuple):
    """A summary including an answer, and the verdict on the answer."""

    summary: Sections
    verdict: Verdict


@dataclass(slots=True)
class SummaryPass:
    """The extension of a summary of `messages`, chunk by chunk; messages and old summary are `before` tokens.

    Names that occur in the `later` texts are asked for, and kept first.
    """

    options: SummaryOptions
    count: CountText
    wording: Wording
    later: Sequence[str]
    messages: Sequence[Message]
    before: int
    _paid: int = 0  # tokens spent on corrections

    def extended(self, summary: str, chunk: Chunk) -> Generator[str, str, tuple[str, str]]:
        """Yield a request and perhaps a correction; return the summary, or "" and why it was rejected."""
        options, old = self.options, read_sections(summary)
        source = Source("\n".join((chunk.text, summary, options.focus)))
        used = names_used("\n".join((summary, *(part[:_MAX_PART] for part in chunk.parts))), self.later)
        expected = expect(chunk.said, options.max_tokens, used)
        touched = frozenset(content_stems(chunk.text))
        prompt = self.wording(summary, chunk.text, options)
        judged = _judged((yield prompt), old, source, expected, touched)
        if not (judged.verdict.is_grounded and judged.verdict.is_complete):
            asked = f"{prompt}\n\n{correction_text(judged.verdict, options.max_tokens)}"
            if self._can_afford(asked, judged.summary):
                base = judged.summary if judged.verdict.is_grounded else old
                again = _judged((yield asked), base, source, expected, touched)
                judged = again if again.verdict.is_grounded or not judged.verdict.is_grounded else judged
        if not judged.verdict.is_fair:
            return "", rejection_of(judged.verdict)
        _complete(judged, chunk)
        return fitted(
            judged.summary, options.max_tokens, self.count, Worth(frozenset(map(plain_name, used)))
        ), ""

    def _can_afford(self, correction: str, summary: Sections) -> bool:
        """Return whether a correction costs less than the summary saves; if so, count its cost as spent.

        A summary is expected to be sent in as many requests as its messages took to accumulate.
        """
        after = min(self.count(summary.text), self.options.max_tokens)
        requests = max(1, sum(message.role == "assistant" for message in self.messages))
        cost = self.count(correction) + after
        if self._paid + cost > (self.before - after) * requests:
            return False
        self._paid += cost
        return True


def _judged(
    answer: str, old: Sections, source: Source, expected: Expected, touched: Iterable[str]
) -> _Judged:
    """Fold an answer into a summary, without lines that name what nobody mentioned, and judge the result."""
    added = read_sections(without_end_marker(without_labels(answer)))
    added = added.without(frozenset(line for _, line in added.all if is_of_the_request(line)))
    added = added.without(foreign_lines([line for _, line in added.all], source))
    whole = extended(old, added, touched)
    return _Judged(whole, judge(whole.text, source, expected, added=added.text))


def _complete(judged: _Judged, chunk: Chunk) -> None:
    """Add, word for word, sentences with the required names that a summary still lacks."""
    summary, missing = judged.summary, list(judged.verdict.missing)
    heading = FACTS if any(heading for heading, _ in summary.all) else NO_HEADING
    for sentence in _sentences((*chunk.said, *chunk.parts)):
        if not missing:
            return
        line = shortened(sentence, _MAX_COMPLETED, Worth(frozenset(map(plain_name, missing))))
        had = Source(line)
        left = [name for name in missing if not had.has(name)]
        if len(left) < len(missing):
            summary.add(heading, without_end_marker(line))
            missing = left


def _sentences(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for match in _SENTENCE.finditer(text):
            if line := " ".join(_LABEL.sub("", match.group()).split()):
                yield line
