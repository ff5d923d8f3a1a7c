"""What is left in a result that was cut of what the model uses of it next, by the way it is cut.

Of the names and lines that one of the next messages of the model uses, those count that stood in this result
and nowhere before it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rolling_chat.context import CountMemo, count_tokens
from rolling_chat.context.cutting.kinds import detect_kind
from rolling_chat.context.cutting.pieces import split
from rolling_chat.context.tool_results import truncate_text
from rolling_chat.context_keys import TRUNCATIONS
from tests.benchmarks.kept_needs import MODEL, Conversation, names_in, repeatable_lines
from tests.benchmarks.reading import NO_TRANSCRIPTS, conversations, transcript_files

CAPS = (400, 1_000, 2_000, 4_000)
# agents without tool calls are given their results as messages of the user
_OBSERVATION = re.compile(r"\s*(?:observation:|\[File: )", re.IGNORECASE)
_MAX_CHARACTERS = 400_000
_SOON = 3  # messages of the model after a result that may use it


def run() -> Iterator[str]:
    """Two lines a file and cap: names and lines used soon that each way of cutting keeps, in percent."""
    files = transcript_files()
    if not files:
        yield NO_TRANSCRIPTS
    for path in files:
        for cap in CAPS:
            yield from _lines(path, cap)


def _lines(path: Path, cap: int) -> Iterator[str]:
    found, kinds = tally(path, cap)
    for column in ("names", "lines"):
        needed = found[column, ""]
        if needed:
            shares = "  ".join(
                f"{style} {100 * found[column, style] / needed:5.1f} %" for style in TRUNCATIONS
            )
            yield f"{path.name.split('.')[0]:<13} at {cap:>5,}  {column}  {shares}  ({needed:,}; {kinds})"


def tally(path: Path, cap: int) -> tuple[Counter[tuple[str, str]], str]:
    """Count what was needed and what each style kept; and how many results of which kind were cut."""
    found, kinds, memo = Counter[tuple[str, str]](), Counter[str](), CountMemo()
    for given in conversations(path):
        told = Conversation.of(given["messages"])
        for at, text in _results(told, cap):
            used = "\n".join(_next_said(told, at))
            before = "\n".join(told.texts[:at])
            needed = {
                "names": {one for one in names_in(used) if one in text and one not in before},
                "lines": {one for one in repeatable_lines(used) if one in text and one not in before},
            }
            if not any(needed.values()):
                continue
            kinds[detect_kind(split(text)).name] += 1
            for column, some in needed.items():
                found[column, ""] += len(some)
            for style in TRUNCATIONS:
                kept = truncate_text(text, cap, style, _count, memo)
                for column, some in needed.items():
                    found[column, style] += sum(one in kept for one in some)
    return found, ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())


def _results(told: Conversation, cap: int) -> Iterator[tuple[int, str]]:
    for at, message in enumerate(told.messages):
        is_result = message.role == "tool" or (message.role == "user" and _OBSERVATION.match(message.text))
        if is_result and told.sizes[at] > cap and len(message.text) <= _MAX_CHARACTERS:
            yield at, message.text


def _next_said(told: Conversation, at: int) -> list[str]:
    answers = [
        index for index in range(at + 1, len(told.messages)) if told.messages[index].role == "assistant"
    ]
    return [told.texts[index] for index in answers[:_SOON]]


def _count(text: str) -> int:
    return count_tokens(text, MODEL)
