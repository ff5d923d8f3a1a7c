"""The targets of vim's motions: pure functions of a text and an index. No Textual here.

Every text is the whole draft; an index is between 0 and its length, and a line ends before its line feed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

Motion: TypeAlias = Callable[[str, int], int]
Span: TypeAlias = tuple[int, int]
"""The first index of a part of the text, and the one after its last character."""

_WORD = re.compile(r"\w+|[^\w\s]+")
_LONG_WORD = re.compile(r"\S+")
_PAIRS = {"(": "()", ")": "()", "b": "()", "[": "[]", "]": "[]", "{": "{}", "}": "{}", "B": "{}", "<": "<>"}
_QUOTES = "\"'`"


def line_start(text: str, at: int) -> int:
    """Return the index of the first character of the line."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Return the index after the last character of the line."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def first_word(text: str, at: int) -> int:
    """Return the index of the line's first character that is not white space."""
    start, end = line_start(text, at), line_end(text, at)
    line = text[start:end]
    return start + len(line) - len(line.lstrip())


def last_on_line(text: str, at: int) -> int:
    """Return the index of the line's last character, the rightmost cursor position in normal mode."""
    return max(line_start(text, at), line_end(text, at) - 1)


def vertical(text: str, at: int, lines: int) -> int:
    """Return the index in the same column `lines` further down, or up if negative, within the text."""
    start = line_start(text, at)
    column = at - start
    for _ in range(abs(lines)):
        if lines > 0:
            end = line_end(text, start)
            if end == len(text):
                break
            start = end + 1
        else:
            if start == 0:
                break
            start = line_start(text, start - 1)
    return min(start + column, line_end(text, start))


def next_word(text: str, at: int, pattern: re.Pattern[str]) -> int:
    """Return the start of the next word; the end of the text if there is none."""
    return next(
        (word.start() for word in pattern.finditer(text, _begin(text, at)) if word.start() > at), len(text)
    )


def previous_word(text: str, at: int, pattern: re.Pattern[str]) -> int:
    """Return the start of the word before the index, or the beginning of the text."""
    found = 0
    for word in pattern.finditer(text, 0, at):
        found = word.start()
    return found


def word_end(text: str, at: int, pattern: re.Pattern[str]) -> int:
    """Return the last character of this word, or of the next one if the index is already there."""
    ends = (word.end() - 1 for word in pattern.finditer(text, _begin(text, at)))
    return next((end for end in ends if end > at), max(0, len(text) - 1))


def _begin(text: str, at: int) -> int:
    """Return an index where the word at `at` may begin: just after the white space before it."""
    return max(text.rfind(" ", 0, at), text.rfind("\n", 0, at), text.rfind("\t", 0, at)) + 1


def find_on_line(text: str, at: int, character: str, *, forward: bool, before: bool) -> int | None:
    """Return the index of `character` on the line after `at`, or before it; None if it is not there.

    `before` stops one character short of it.
    """
    if forward:
        found = text.find(character, at + 1, line_end(text, at))
        return None if found < 0 else found - before
    found = text.rfind(character, line_start(text, at), at)
    return None if found < 0 else found + before


def text_object(text: str, at: int, kind: str, *, around: bool) -> Span | None:
    """Return the text object (such as `iw`, `a"` or `i(`) at an index; None if there is none."""
    if kind in {"w", "W"}:
        return _word_object(text, at, _WORD if kind == "w" else _LONG_WORD, around=around)
    if kind in _QUOTES:
        return _quoted(text, at, kind, around=around)
    pair = _PAIRS.get(kind)
    return None if pair is None else _bracketed(text, at, pair, around=around)


def _word_object(text: str, at: int, pattern: re.Pattern[str], *, around: bool) -> Span | None:
    start, end = line_start(text, at), line_end(text, at)
    word = next((word for word in pattern.finditer(text, start, end) if word.end() > at), None)
    if word is None or word.start() > at:  # on white space
        first = at
        while first > start and text[first - 1].isspace():
            first -= 1
        last = word.start() if word is not None else end
        return (first, word.end() if around and word is not None else last) if last > first else None
    if not around:
        return word.span()
    after = word.end()
    while after < end and text[after].isspace():
        after += 1
    before = word.start()
    if after == word.end():  # no space after it: include the space before it
        while before > start and text[before - 1].isspace():
            before -= 1
    return before, after


def _quoted(text: str, at: int, quote: str, *, around: bool) -> Span | None:
    start, end = line_start(text, at), line_end(text, at)
    places = [place for place in range(start, end) if text[place] == quote]
    for first, last in zip(places[::2], places[1::2], strict=False):
        if at <= last:
            return (first, last + 1) if around else (first + 1, last)
    return None


def _bracketed(text: str, at: int, pair: str, *, around: bool) -> Span | None:
    opening, closing = pair[0], pair[1]
    depth, first = 0, at
    while first >= 0:
        if text[first : first + 1] == closing and first != at:
            depth += 1
        elif text[first : first + 1] == opening:
            if depth == 0:
                break
            depth -= 1
        first -= 1
    if first < 0:
        return None
    depth = 0
    for last in range(first, len(text)):
        if text[last] == opening:
            depth += 1
        elif text[last] == closing:
            depth -= 1
            if depth == 0:
                return (first, last + 1) if around else (first + 1, last)
    return None


def _repeated_word(step: Callable[[str, int, re.Pattern[str]], int], pattern: re.Pattern[str]) -> Motion:
    return lambda text, at: step(text, at, pattern)


MOTIONS: Mapping[str, Motion] = MappingProxyType(
    {
        "h": lambda text, at: max(line_start(text, at), at - 1),
        "l": lambda text, at: min(line_end(text, at), at + 1),
        "w": _repeated_word(next_word, _WORD),
        "W": _repeated_word(next_word, _LONG_WORD),
        "b": _repeated_word(previous_word, _WORD),
        "B": _repeated_word(previous_word, _LONG_WORD),
        "e": _repeated_word(word_end, _WORD),
        "E": _repeated_word(word_end, _LONG_WORD),
        "0": line_start,
        "^": first_word,
        "$": line_end,
    }
)
"""The motions that a count repeats, by key."""

INCLUSIVE = frozenset("eE")
"""Motions whose target character an operator includes."""
