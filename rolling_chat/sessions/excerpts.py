"""The line of a search hit: the text around its first match, in time linear in the text.

SQLite's own `snippet()` takes time quadratic in the matches of one message: minutes for a repetitive result.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from rolling_chat.text import one_line

Term = Sequence[str]
"""Words that stand together."""

_MAX_CHARACTERS = 160
_BEFORE = 30  # characters of the window before the match
_MAX_CANDIDATES = 20_000  # places looked at for a whole word
_MAX_FOLDED = 200_000  # characters searched without their accents
_CHUNK = 2_000
_OVERLAP = 80


def excerpt(text: str, terms: Sequence[Term]) -> str:
    """Cut one printable line of `text` around the first match of `terms`, the matches in brackets."""
    at = _first_place(text, terms)
    start = max(0, at - _BEFORE) if at + _BEFORE > _MAX_CHARACTERS else 0
    window = text[start : start + _MAX_CHARACTERS]
    return one_line(("…" if start else "") + _marked(window, terms), _MAX_CHARACTERS)


def _first_place(text: str, terms: Sequence[Term]) -> int:
    lower = text.lower()
    if len(lower) != len(text):  # places would not agree: a capital whose small letter takes two characters
        lower = "".join(_lower(character) for character in text[:_MAX_FOLDED])
    for is_whole in (True, False):
        places = [place for term in terms if (place := _place(lower, term[0].lower(), is_whole)) >= 0]
        if places:
            return min(places)
    return max(0, min((place for term in terms if (place := _folded_place(text, term[0])) >= 0), default=0))


def _place(lower: str, word: str, is_whole: bool) -> int:
    """Return the first place of `word`, as a whole word or at the beginning of one; -1 for none."""
    at = -1
    for _ in range(_MAX_CANDIDATES):
        at = lower.find(word, at + 1)
        if at < 0:
            return -1
        begins = at == 0 or not _in_word(lower[at - 1])
        end = at + len(word)
        if begins and not (is_whole and end < len(lower) and _in_word(lower[end])):
            return at
    return -1


def _folded_place(text: str, word: str) -> int:
    """Return the first place of `word` whatever its accents, or amid a word; -1 for none."""
    word = _fold(word)
    if (at := text.lower().find(word)) >= 0:
        return min(at, len(text) - 1)
    for begin in range(0, min(len(text), _MAX_FOLDED), _CHUNK):
        chunk = text[begin : begin + _CHUNK + _OVERLAP]
        if not chunk.isascii() and word in _fold(chunk):
            folded, places = _fold_with_places(chunk)
            return begin + places[max(0, folded.find(word))]
    return -1


def _marked(window: str, terms: Sequence[Term]) -> str:
    folded, places = _fold_with_places(window)
    phrases = [r"\W+".join(re.escape(_fold(word)) for word in term) for term in terms]
    for pattern in (rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)", rf"(?:{'|'.join(phrases)})"):
        spans = [(places[found.start()], places[found.end()]) for found in re.finditer(pattern, folded)]
        if spans:
            break
    for begin, end in reversed(spans):
        window = f"{window[:begin]}[{window[begin:end]}]{window[end:]}"
    return window


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _lower(character: str) -> str:
    lower = character.lower()
    return lower if len(lower) == 1 else character


def _fold(text: str) -> str:
    """As the index compares: small letters without accents."""
    return "".join(
        each for each in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(each)
    )


def _fold_with_places(text: str) -> tuple[str, list[int]]:
    """`text` as it is compared, and of every character of that, and of the end, the place in `text`."""
    folded, places = [], []
    for at, character in enumerate(text):
        for each in _fold(character):
            folded.append(each)
            places.append(at)
    return "".join(folded), [*places, len(text)]
