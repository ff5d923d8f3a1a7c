"""Where a text that is too long for one block is cut: each place hangs only on what is before it."""

from __future__ import annotations

import unicodedata

PIECE_CHARS = 2048
PIECE_LINES = 40
TABLE_ROWS = 20  # after these a table's columns keep their widths
MOST = 2 * PIECE_CHARS  # a block that is longer is cut
MOST_LINES = 4 * PIECE_LINES  # and so is one of more lines: a line costs as much as its characters


def is_long(source: str) -> bool:
    """Is a block too long to be drawn as one?"""
    return len(source) > MOST or source.count("\n") > MOST_LINES


def first_lines(text: str, count: int, *, is_all: bool) -> tuple[str, bool]:
    """At most `count` lines of a text, and whether that is all there will be."""
    lines = text.split("\n", count)
    few = text if len(lines) <= count else text[: -len(lines[-1]) or None]
    return few, is_all and len(few) == len(text)


def code_cut(code: str) -> int | None:
    """Where to cut code that is too long for one piece; None where it is not known to be."""
    many = code.count("\n") > PIECE_LINES
    if not many and len(code) <= PIECE_CHARS:
        return None
    at = code.rfind("\n", 0, PIECE_CHARS) + 1 or whole_character(code, PIECE_CHARS)
    lines = code[:at].split("\n", PIECE_LINES)
    return at - len(lines[-1]) if len(lines) > PIECE_LINES else at


def paragraph_cut(text: str) -> tuple[int, str | None]:
    """Where to cut a paragraph, and the white space left out there; None where a line ends.

    At the end of a line, of a sentence, of a word, in this order.
    """
    lines = text[:PIECE_CHARS].split("\n", 2 * PIECE_LINES)
    if len(lines) > 2 * PIECE_LINES:
        return len(text[:PIECE_CHARS]) - len(lines[-1]), None
    for end in ("\n", ". ", " "):
        at = text.rfind(end, PIECE_CHARS // 2, PIECE_CHARS)
        if at >= 0:
            return (at + 1, None) if end == "\n" else (at + len(end) - 1, " ")
    return whole_character(text, PIECE_CHARS), ""


def whole_character(text: str, at: int) -> int:
    """The place at or before `at` that parts no character from what is drawn on top of it."""
    if at >= len(text):
        return len(text)
    for place in range(at, max(1, at - 64), -1):
        here, above = text[place], text[place - 1]
        if not unicodedata.combining(here) and not _joins(here) and above != "\u200d":
            return place
    return at


def _joins(character: str) -> bool:
    return (
        character == "\u200d"
        or "\ufe00" <= character <= "\ufe0f"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )


def some_rows(lines: list[str], most: int) -> list[str]:
    """As many rows as one piece takes; none where the first is too long for a table."""
    taken: list[str] = []
    for line in lines[:TABLE_ROWS]:
        most -= len(line)
        if most < 0 and (taken or len(line) > PIECE_CHARS):
            break
        taken.append(line)
    return taken
