"""Split text in any script into search terms: case-folded, split at identifier parts, and stemmed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_STOP_WORDS_TEXT = """
    a about after again all also am an and any are as at be because been before but by can could did do does
    earlier find for from give had has have he her him his how i if in into is it its just know let like many
    me mention mentioned mine more most much my no not now of on one only or other our out please remember
    said say she should show so some tell than that the their them then there these they this those to told
    too us use very was we were what when where which who whom whose why will with would you your yours
    der die das den dem des ein eine einen und oder ist sind war wie wo wer wann warum welche welcher welches
    mit von zu zum zur im auf wir ihr sie ich du nicht haben hat wird
    le la les un une des du et ou est sont quel quelle quels quelles qui que quoi comment pourquoi dans pour
    sur avec nous vous je tu il elle ne pas au aux ce cette
    el los las uno una unos unas y o es son fue cual cuales quien cuando donde como por para con del al en
    se su sus nos no lo"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
"""Words without meaning of their own in English, German, French and Spanish, folded."""

# Scripts written without spaces, and Hangul, whose particles are attached to the word.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(f"[{_UNSPACED}]+|(?:(?![{_UNSPACED}])[^\\W_])+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Chinese and Japanese characters for conjunctions, particles, questions and pronouns.
_JOINERS = re.compile(
    "[的了吗呢吧啊是在和与就都也不我你您他她它们这那哪谁么什怎几个はがをにのでともへやかねよ]+"
)

_ASCII_WORD = re.compile(r"[a-z0-9]+")
_MIN_STEM = 3
_SHORT = 3  # characters
# Suffixes to remove, longest first; a stem is always a prefix of its word.
_SUFFIXES = (
    "isations", "izations", "isation", "ization", "ations", "ation", "ements", "ement", "ments", "ment",
    "nesses", "ness", "ingly", "edly", "ions", "ion", "ings", "ing", "ies", "ied", "ers", "ables", "able",
    "ible", "ed", "er", "es", "ly", "en", "s", "e", "y",
)  # fmt: skip
_STEM_LEFT = {"er": 4, "ers": 4, "en": 5, "ible": 4, "able": 4, "ly": 4, "y": 3, "s": 3}
_KEEPS_S = ("ss", "us", "is")
_VOWELS = frozenset("aeiouy")


def fold(text: str) -> str:
    """Return `text` in lower case and without accents, with the same lines."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    for accent in filter(unicodedata.combining, set(apart)):  # few distinct ones
        apart = apart.replace(accent, "")
    # NFKD also decomposed Hangul; compose it again
    return unicodedata.normalize("NFC", apart)


def words_of(text: str) -> Iterator[str]:
    """Yield the stems of `text` in order, including stop words.

    Identifiers yield their parts, scripts written without spaces pairs of characters.
    """
    yield from map(stem, split_words(text))


def split_words(text: str) -> list[str]:
    """Return the words of `text` in order, unstemmed, and split as `words_of` does."""
    if text.isascii():
        lower = text.lower()
        return _ASCII_WORD.findall(lower if lower == text else _CAMEL.sub(" ", text).lower())
    words: list[str] = []
    for token in _tokens(text):
        if _IS_UNSPACED.match(token):
            words += _pairs(token)
        else:
            words.append(token)
    return words


def is_short(stem: str) -> bool:
    """Return whether to match a stem only at the start of words, as it occurs inside others by chance."""
    return len(stem) <= _SHORT and stem.isascii()


def content_stems(text: str) -> list[str]:
    """Return the stems of `text` without stop words, each once, in order; all if there are only those."""
    found: dict[str, None] = {}
    for token in _tokens(text):
        if _IS_UNSPACED.match(token):
            for run in _JOINERS.split(token):
                found |= dict.fromkeys(_pairs(run))
        elif token not in STOP_WORDS and (len(token) > 1 or token.isdigit()):
            found[stem(token)] = None
    return list(found) or list(dict.fromkeys(words_of(text)))


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return a word's stem, the prefix that its forms share: `retries` and `retry` become `retr`."""
    if len(word) <= _MIN_STEM or any(char.isdigit() for char in word):
        return word
    if not word.isascii():
        return word[: max(4, len(word) - 2)] if not word[0].isascii() else word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and _may_lose(word, suffix):
            word = word.removesuffix(suffix)
            break
    for rest, least in (("at", 3), ("is", 4), ("iz", 4), ("i", 3)):
        if word.endswith(rest) and len(word) - len(rest) >= least:
            word = word.removesuffix(rest)
            break
    if len(word) > _MIN_STEM and word[-1] == word[-2]:
        word = word[:-1]
    return word


def _may_lose(word: str, suffix: str) -> bool:
    left = len(word) - len(suffix)
    if left < _STEM_LEFT.get(suffix, _MIN_STEM):
        return False
    if suffix == "s":
        return not word.endswith(_KEEPS_S)
    if suffix == "y":
        return word[-2] not in _VOWELS
    return any(char in _VOWELS for char in word[:left])


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(fold(_CAMEL.sub(" ", text))):
        yield match.group()


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for at in range(len(run) - 1):
        yield run[at : at + 2]
