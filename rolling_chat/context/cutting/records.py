"""Choose what to keep of logs, test runs and prose: text that reports events line by line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from rolling_chat.context.cutting.lines import Lines, TextKind, with_continuations
from rolling_chat.context.cutting.pieces import Layer, edges, with_neighbors

_MAX_NOTED = 6  # patterns
_PASSED = frozenset({b"PASSED", b"PASS", b"ok", b"OK", b"passed", "✓".encode(), "✔".encode(), "√".encode()})
_FAILURES = re.compile(r"^={3,} (?:FAILURES|ERRORS) =|^failures:$|^FAIL: |^ERROR: |^_{3,} .+ _{3,}$")
_FAILURE_STARTS = ("=", "_", "F", "E", "f")
_NEXT_SECTION = re.compile(r"^={3,} ")


def log_layers(lines: Lines) -> list[Layer]:
    """Keep both ends, errors with their tracebacks, rare lines, and one line of each pattern."""
    alarming = lines.alarming
    return [
        Layer(edges(lines.count, first=0.4), 0.12),
        Layer(with_continuations(lines, alarming), 0.28),
        Layer(lines.rare, 0.3),
        Layer(lines.examples, 0.1),
        Layer(with_neighbors(alarming, lines.count, 2), 0.1),
        Layer(edges(lines.count, first=0.4), 1),
    ]


def text_layers(lines: Lines) -> list[Layer]:
    """Keep both ends and rare lines between them."""
    return [
        Layer(edges(lines.count), 0.2),
        Layer(lines.alarming, 0.15),
        Layer(lines.rare, 0.35),
        Layer(edges(lines.count), 1),
    ]


def test_layers(lines: Lines) -> list[Layer]:
    """Keep whole failures, the summary at the end, and rare lines."""
    return [
        Layer(edges(lines.count, first=0.2), 0.1),
        Layer(_failures(lines), 0.5),
        Layer(lines.rare, 0.25),
        Layer(edges(lines.count, first=0.2), 1),
    ]


def _failures(lines: Lines) -> Iterator[int]:
    """Yield the lines that name a failure, then the sections that describe failures."""
    texts = lines.pieces.texts
    passed = set(lines.containing(_PASSED))
    failed = [index for index in lines.alarming if index not in passed]
    yield from failed
    index = 0
    while index < len(texts):
        if not texts[index].startswith(_FAILURE_STARTS) or not _FAILURES.search(texts[index]):
            index += 1
            continue
        yield index
        index += 1
        while index < len(texts) and not _NEXT_SECTION.search(texts[index]):
            yield index
            index += 1
    yield from with_neighbors(failed, lines.count, 3)


def note_patterns(lines: Lines, chosen: Sequence[int]) -> str:
    """Return a note on which of the kept lines stand for many similar ones."""
    kept, numbers = set(chosen), lines.pieces.numbers
    omitted = lines.pattern_counts - Counter(lines.pattern[index] for index in chosen)
    entries = [
        f"{count:,} like line {numbers[index]}"
        for index, count in omitted.most_common(_MAX_NOTED)
        if index in kept
    ]
    return f"left out: {', '.join(entries)}" if entries else ""


def note_passes(lines: Lines, chosen: Sequence[int]) -> str:
    """Return a note on how many lines about passed tests were left out."""
    passed = len(set(lines.containing(_PASSED)).difference(chosen))
    return f"left out: {passed:,} lines of passed tests" if passed else ""


LOG = TextKind("log", log_layers, note_patterns)
TESTS = TextKind("tests", test_layers, note_passes)
TEXT = TextKind("text", text_layers)
