"""Find names in a text: paths, symbols, errors, identifiers and numbers that a later message may need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum

_MAX_NAME = 100  # characters
_MIN_DIGITS = 3  # of a number that is meaningful by itself
# a longer word of only letters and digits is a hash, a key or encoded data
_MAX_WORD = 24

# Letters of the alphabets in which names are written: Latin, Greek, Cyrillic. Scripts without spaces are
# excluded, or a path in a Chinese sentence would never end.
_LETTER = r"A-Za-z\u00c0-\u024f\u0370-\u052f"
# A word with something that prose lacks: a capital after the first letter, a digit, an underscore, a slash, a
# dot or hyphen between letters. The repeats are possessive, so that each word is scanned only once.
_CANDIDATE = re.compile(
    rf"(?<![{_LETTER}0-9_./@#$~-])"
    rf"[{_LETTER}]?[a-z]*+"
    rf"(?:[A-Z0-9_/@#$~]|[.-](?=[{_LETTER}0-9_./-]))"
    rf"[{_LETTER}0-9_./@#$~%+,-]*+"
)
_GROUPED_NUMBER = re.compile(r"[$#]?\d{1,3}(?:,\d{3})+(?:\.\d+)?%?")
_NUMBER = re.compile(r"[$#]?\d+(?:[.:-]\d+)*%?")
_DOTTED = re.compile(rf"[{_LETTER}_][{_LETTER}0-9_-]*(?:\.[{_LETTER}_][{_LETTER}0-9_-]*)+")
_ADDRESS = re.compile(r"[^@/]+@[^@/]+\.[^@/]+")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_ERROR = re.compile(r"(?:Error|Exception|Warning|Fault|Failure|Panic)$|^(?:E[A-Z]{3,}|SIG[A-Z]{3,})$")


class NameKind(IntEnum):
    """The kinds of names."""

    PATH = 0
    ERROR = 1
    SYMBOL = 2
    IDENTIFIER = 3  # letters and digits: an order, a ticket, a version
    NUMBER = 4


def names_in(text: str) -> Iterator[tuple[str, NameKind]]:
    """Yield the names in a text in order, repeated names included."""
    for found in _CANDIDATE.finditer(text):
        for part in _parts(found[0]):
            name = part.strip("-+%,").rstrip(".-/@#$~").removeprefix("./").removeprefix("//")
            kind = kind_of(name)
            if kind is not None:
                yield name, kind


def _parts(candidate: str) -> Iterator[str]:
    """Split a candidate at commas, which are part of a name only in a grouped number."""
    if "," not in candidate or _GROUPED_NUMBER.fullmatch(candidate.rstrip(".,")):
        yield candidate.rstrip(",")
    else:
        yield from candidate.split(",")


def kind_of(name: str) -> NameKind | None:
    """Return the kind of a name; None if the word is not a name."""
    if not 3 <= len(name) <= _MAX_NAME:
        return None
    has_digit, has_letter = any(map(str.isdigit, name)), any(map(str.isalpha, name))
    if not has_letter:
        digits = sum(map(str.isdigit, name))
        is_number = _NUMBER.fullmatch(name) or _GROUPED_NUMBER.fullmatch(name)
        return NameKind.NUMBER if is_number and digits >= _MIN_DIGITS else None
    if len(name) > _MAX_WORD and has_digit and name.isalnum():
        return None
    if "/" in name:
        return NameKind.PATH if any(len(part) > 1 for part in name.split("/")) else None
    if "@" in name:
        return NameKind.IDENTIFIER if _ADDRESS.fullmatch(name) else None
    if _ERROR.search(name):
        return NameKind.ERROR
    if _DOTTED.fullmatch(name):
        return NameKind.SYMBOL if any(len(part) > 1 for part in name.split(".")) else None
    if "_" in name.strip("_") or _HUMP.search(name):
        return NameKind.SYMBOL
    return NameKind.IDENTIFIER if has_digit else None
