"""Detect the kind of a text from a sample of its lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rolling_chat.context.cutting.lines import FOUND, TextKind
from rolling_chat.context.cutting.listings import PATH, PATHS, SEARCH, TABLE, delimiter_of
from rolling_chat.context.cutting.pieces import Pieces
from rolling_chat.context.cutting.records import LOG, TESTS, TEXT
from rolling_chat.context.cutting.sources import CODE, DIFF, SIGNATURE

_FIRST_LINES = 40  # lines sampled from the beginning
_SAMPLE = 240  # lines sampled from the rest of the text
_BLOCK_LINES = 10
_MAX_LINE_CHARS = 400  # characters of each line

_DIFF = re.compile(r"^(?:diff --git |@@ -\d|Index: \S|--- [ab]/|\+\+\+ [ab]/)")
_CHANGE = re.compile(r"^[-+ @\\]|^$")
_TEST = re.compile(
    r"^(?:={3,} (?:test session|FAILURES|ERRORS|short test)|(?:not )?ok \d+\b|\s*--- (?:PASS|FAIL|SKIP)"
    r"|=== RUN|running \d+ tests?|test \S+ \.\.\. (?:ok|FAILED|ignored)|\s*[✓✔✗✕×] |PASS |FAIL "
    r"|(?:PASSED|FAILED) |TAP version|Test Suites:|\[ *(?:RUN|OK|FAILED) *\])"
    r"|\s(?:PASSED|FAILED|SKIPPED|XFAIL|ERROR)(?:\s+\[ *\d+%\])?$"
)
_TIME = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\b\d\d:\d\d:\d\d\b|^\[? *\d+\.\d{3,}\]"
    r"|\b[A-Z][a-z]{2} [ \d]\d \d\d:\d\d|\d\d/[A-Z][a-z]{2}/\d{4}:"
)
_LEVEL = re.compile(
    r"\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|level=\w+)\b|^\[?[DIWEF]\d{4} "
)
_CODE = re.compile(
    r"[{};]\s*$|^\s*(?:return|if|elif|else|for|while|try|except|raise|self\.|//|/\*|\*|#)\b|\)\s*:\s*$"
    r"|\w\(.*\)\s*$|^\s+\w+(?:\.\w+)* [-+*/|&]?= "
)


def detect_kind(pieces: Pieces) -> TextKind:
    """Return the kind that most sampled lines indicate; prose if no other fits."""
    sample = _sample(pieces)
    if not sample:
        return TEXT
    share = _Share(sample)
    if share.of(_DIFF) and share.any_starts(("@@ -", "diff --git ")) and share.of(_CHANGE) > 0.6:
        return DIFF
    if share.of(FOUND) > 0.6 and share.of(_TIME) < 0.3:
        return SEARCH
    if share.of(_TEST) > 0.15 or (share.of(_TEST) and sample[0].startswith("=====")):
        return TESTS
    if share.of(PATH) > 0.7 and share.with_text("/") + share.with_text(".") > 0.6:
        return PATHS
    if share.of(_TIME) > 0.3 or share.of(_LEVEL) > 0.3:
        return LOG
    if share.of(SIGNATURE) > 0.03 and share.of(SIGNATURE) + share.of(_CODE) > 0.3:
        return CODE
    if delimiter_of(sample) is not None:
        return TABLE
    return CODE if share.of(_CODE) > 0.5 else TEXT


class _Share:
    """The share of some lines that match a pattern."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines

    def of(self, pattern: re.Pattern[str]) -> float:
        return self._count(lambda line: pattern.search(line) is not None)

    def with_text(self, text: str) -> float:
        return self._count(lambda line: text in line)

    def any_starts(self, starts: tuple[str, ...]) -> bool:
        return any(line.startswith(starts) for line in self._lines)

    def _count(self, is_found: Callable[[str], bool]) -> float:
        return sum(map(is_found, self._lines)) / len(self._lines)


def _sample(pieces: Pieces) -> list[str]:
    """Return the first lines, then blocks of lines from the rest: single lines could miss a pattern."""
    texts = pieces.texts
    sample = list(texts[:_FIRST_LINES])
    step = max(_BLOCK_LINES, (len(texts) - _FIRST_LINES) * _BLOCK_LINES // _SAMPLE)
    for start in range(_FIRST_LINES, len(texts), step):
        sample += texts[start : start + _BLOCK_LINES]
    return [text[:_MAX_LINE_CHARS].rstrip("\r") for text in sample if text.strip()]
