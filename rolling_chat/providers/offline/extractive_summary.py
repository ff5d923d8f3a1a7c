"""Extract a summary: the sentences about requests, decisions and findings, word for word."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rolling_chat.providers.offline.matching import split_sentences
from rolling_chat.providers.offline.token_counts import fitting_pieces

_ASKS = re.compile(
    r"\b(?:summari[sz]e|summari[sz]er|write (?:a|the) summary|extend (?:a|the) summary)\b", re.IGNORECASE
)
_TELLING = re.compile(
    r"[/\\`]|\w\.\w{1,4}\b|\d|error|exception|fail|decid|must|should|will|prefer|chose|found|because|fixed"
    r"|todo|open|name|called|is\b",
    re.IGNORECASE,
)
_EMPTY_TALK = re.compile(
    r"(?:ok(?:ay)?|thanks?|thank you|sure|yes|no|hello|hi|great|noted)\W*", re.IGNORECASE
)
_MARKED = re.compile(r"^<(?:summary|messages)>\n(.*?)\n</(?:summary|messages)>$", re.DOTALL | re.MULTILINE)
_WHO = re.compile(r"^(?:User|Assistant|Result): ", re.MULTILINE)
_NO_STATEMENT = re.compile(r"\[(?:called|result masked) .*\]|.*\?")
# The most tokens of a summary: 400 words, 800 tokens at most.
_SUMMARY_TOKENS = 700
_FRONT_CHARS = 600


def asks_for_summary(system: str) -> bool:
    """Return whether a system message asks for a summary. A summary that it contains does not count."""
    return _ASKS.search(system[:_FRONT_CHARS]) is not None


def marked_texts(asked: str) -> list[str]:
    """Return the texts between the markers of a summary request, the old summary first.

    Empty if it is not such a request. Speaker labels, calls, questions and masks of results are left out.
    """
    if not asks_for_summary(asked):
        return []
    texts = (_WHO.sub("", text) for text in _MARKED.findall(asked))
    return [
        "\n".join(line for line in split_sentences(text) if not _NO_STATEMENT.fullmatch(line))
        for text in texts
    ]


def extract_summary(texts: Sequence[str]) -> str:
    """Write a bulleted summary from sentences of `texts`; if room is short, the newest are kept."""
    lines: list[str] = []
    for text in texts:
        for sentence in split_sentences(text):
            line = sentence.lstrip("-*• ").strip()
            if len(line) > 8 and _TELLING.search(line) and not _EMPTY_TALK.fullmatch(line):
                lines.append(f"- {line}\n")
    newest_first = list(dict.fromkeys(reversed(lines)))
    kept = newest_first[: fitting_pieces(newest_first, _SUMMARY_TOKENS)]
    return "".join(reversed(kept)).rstrip() or "- Nothing of substance was said."
