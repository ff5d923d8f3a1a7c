"""Find the text that an edit replaces, or else the most similar lines and how they differ."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rolling_chat.tools.base import ToolError
from rolling_chat.tools.file_text import FileText

_MAX_LINES_NAMED = 12  # lines named for a text that is not unique
_MAX_CANDIDATES = 8  # places in the file to compare
_MAX_COMPARED = 2_000  # characters to compare in a place; the time grows with their square
_MIN_LIKENESS = 0.5
_SHOWN = 120  # characters of a differing line
_ALIKE = {
    **dict.fromkeys(map(ord, '\u2018\u2019\u201c\u201d\u00ab\u00bb`"'), "'"),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212"), "-"),
    **dict.fromkeys(map(ord, "\u00a0\u2009\u202f"), " "),
}


def find_spans(file: FileText, old: str, name: str, *, all_of_them: bool) -> list[tuple[int, int]]:
    """Return the span of `old` in the file, or all spans with `all_of_them`.

    Raises ToolError if it is not there, naming the most similar place and the difference, or if it is in
    several places, naming their lines.
    """
    old = old.replace("\r\n", "\n")
    # overlapping places are ambiguous too
    spans = list(_occurrences(file.text, old, len(old) if all_of_them else 1))
    if not spans:
        raise ToolError(_not_found(file, old, name))
    if len(spans) > 1 and not all_of_them:
        lines = [f"{file.line_at(start):,}" for start, _ in spans[:_MAX_LINES_NAMED]]
        more = f" and {len(spans) - len(lines):,} more" if len(spans) > len(lines) else ""
        raise ToolError(
            f"`old` is {len(spans):,} times in {name}, at lines {', '.join(lines)}{more}: "
            "add lines around it to make it unique, or set `all`."
        )
    return spans


def _occurrences(text: str, old: str, step: int) -> Iterator[tuple[int, int]]:
    start = text.find(old)
    while start >= 0:
        yield start, start + len(old)
        start = text.find(old, start + step)


@dataclass(frozen=True, slots=True)
class _Nearest:
    line: int  # from 1
    text: str
    likeness: float


def _not_found(file: FileText, old: str, name: str) -> str:
    if not file.text:
        return f"`old` is not in {name}: the file is empty."
    nearest = _nearest(file.text.split("\n"), old.split("\n"))
    if nearest is None:
        return f"`old` is not in {name}, and nothing in it is similar: read the file again."
    place = f"`old` is not in {name}. The nearest place is line {nearest.line:,}"
    return f"{place}, {_difference(old, nearest.text)}. Copy the text exactly as the file has it."


def _nearest(lines: Sequence[str], wanted: Sequence[str]) -> _Nearest | None:
    """Return the lines that are most similar to those wanted; None if none are similar."""
    size = len(wanted)
    found = [
        _Nearest(
            start + 1, text := "\n".join(lines[start : start + size]), _likeness(text, "\n".join(wanted))
        )
        for start in _candidates(lines, wanted)
    ]
    best = max(found, key=lambda one: one.likeness, default=None)
    return best if best is not None and best.likeness >= _MIN_LIKENESS else None


def _candidates(lines: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Return the first lines of the places that share most lines with those wanted, ignoring spelling."""
    known: dict[str, list[int]] = {}
    for offset, line in enumerate(wanted):
        if folded := _folded(line):
            known.setdefault(folded, []).append(offset)
    votes: dict[int, int] = {}
    for number, line in enumerate(lines):
        for offset in known.get(_folded(line), ())[:4]:
            start = max(0, number - offset)
            votes[start] = votes.get(start, 0) + 1
    if not votes:
        votes = _similar_to_longest(lines, wanted)
    return sorted(votes, key=lambda start: (-votes[start], start))[:_MAX_CANDIDATES]


def _similar_to_longest(lines: Sequence[str], wanted: Sequence[str]) -> dict[int, int]:
    """Find lines that are similar to the longest line wanted, if none equals any of them."""
    offset, longest = max(enumerate(wanted), key=lambda one: len(one[1].strip()))
    words = set(re.findall(r"\w+", longest.lower()))
    if not words:
        return {}
    shared = {
        max(0, number - offset): len(words & set(re.findall(r"\w+", line[:500].lower())))
        for number, line in enumerate(lines)
    }
    return {start: count for start, count in shared.items() if count * 2 >= len(words)}


def _likeness(text: str, wanted: str) -> float:
    if _folded(text) == _folded(wanted):
        return 1.0
    matcher = difflib.SequenceMatcher(None, text[:_MAX_COMPARED], wanted[:_MAX_COMPARED], autojunk=False)
    is_like = min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= _MIN_LIKENESS
    return matcher.ratio() if is_like else 0.0


def _folded(text: str) -> str:
    """Return text without differences in white space, quotes, dashes and case."""
    return "".join(text.translate(_ALIKE).split()).lower()


def _difference(old: str, there: str) -> str:
    """Return a clause that describes the difference between `old` and the text in the file."""
    if _unquoted(old) == _unquoted(there):
        return "which differs in its quotation marks or dashes"
    old_lines, there_lines = old.split("\n"), there.split("\n")
    pairs = [(a, b) for a, b in zip(old_lines, there_lines, strict=False) if a != b]
    if not pairs:
        return "where the file ends sooner than `old`"
    if all(a.strip() == b.strip() for a, b in pairs):
        if all(a.rstrip() == b.rstrip() for a, b in pairs):
            return "which differs in blanks at the end of a line"
        a, b = next((a, b) for a, b in pairs if a.rstrip() != b.rstrip())
        return f"which differs in indentation: {_indent(b)} in the file, {_indent(a)} in `old`"
    if all("".join(a.split()) == "".join(b.split()) for a, b in pairs):
        return "which differs in white space"
    if _folded(old) == _folded(there):
        return "which differs in case, quotation marks or white space"
    a, b = pairs[0]
    number = next(number for number, line in enumerate(old_lines, start=1) if line != there_lines[number - 1])
    where = f"line {number} of `old`" if len(old_lines) > 1 else "`old`"
    return f"where the file has {_part(b, a)!r} and {where} has {_part(a, b)!r}"


def _part(line: str, other: str) -> str:
    """Return the part of a line in which it differs from another."""
    line, other = line.strip(), other.strip()
    same = next((at for at, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), 0)
    start = max(0, same - _SHOWN // 2) if len(line) > _SHOWN else 0
    return line[start : start + _SHOWN]


def _unquoted(text: str) -> str:
    return text.translate(_ALIKE)


def _indent(line: str) -> str:
    blanks = line[: len(line) - len(line.lstrip())]
    tabs, spaces = blanks.count("\t"), blanks.count(" ")
    parts = [f"{tabs} tab{'s' * (tabs != 1)}"] * bool(tabs) + [f"{spaces} space{'s' * (spaces != 1)}"] * bool(
        spaces
    )
    return " and ".join(parts) or "none"
