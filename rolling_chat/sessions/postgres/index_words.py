"""The words of a text as the full-text index keeps them, the same that SQLite's index would find.

PostgreSQL's own parser takes addresses, paths and numbers with a sign for one word each, and what it takes
for a letter is the server's choice. So the words are found here: runs of letters and digits, small and
without accents.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from rolling_chat.sessions.search_query import Term, content_forms

# limits of a tsvector: https://www.postgresql.org/docs/current/textsearch-limitations.html
_MAX_PLACE = 16_383
_MAX_PLACES = 255  # of one word
_MAX_BYTES = 900_000
_MAX_CHARACTERS = 2_000_000  # read in some 0.3 s
_MAX_WORD = 500  # characters, far below the 2 KB that a word may have
_PLACE_BYTES = 2

_WORD = re.compile(r"[^\W_]+")


def index_words(text: str) -> str:
    """Return a text's words with their places, in a tsvector's notation; of a huge text the first ones."""
    places: dict[str, list[int]] = {}
    size = 0
    for place, word in enumerate(words_of(text[:_MAX_CHARACTERS]), start=1):
        found = places.get(word)
        if found is None:
            size += len(word.encode()) + 8
            if size > _MAX_BYTES:
                break
            found = places[word] = []
        if place <= _MAX_PLACE and len(found) < _MAX_PLACES:
            size += _PLACE_BYTES
            found.append(place)
    return _notation(places)


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text as they are compared."""
    folded = text.lower()
    if not folded.isascii():
        folded = "".join(map(_without_accent, folded))
    return (found[0][:_MAX_WORD] for found in _WORD.finditer(folded))


def every_word(terms: Sequence[Term], *, beginnings: bool = False) -> str:
    """Return the query that finds every term, in a tsquery's notation; empty if it has no words."""
    return _joined([_query(term, beginnings=beginnings) for term in terms], " & ")


def any_word(terms: Sequence[Term]) -> str:
    """Return the query that finds any phrase or word, words in any form; not those that say nothing."""
    phrases = [_query(term) for term in terms if term.is_phrase]
    forms = [_phrase([form], is_beginning=True) for form in content_forms(terms)]
    return _joined(phrases + forms or [_query(term, beginnings=True) for term in terms], " | ")


def _query(term: Term, *, beginnings: bool = False) -> str:
    if term.is_phrase:
        return _phrase(term.words)
    begins = term.is_beginning or (beginnings and term.may_begin())
    return _joined([_phrase([word], is_beginning=begins) for word in term.words], " & ")


def _phrase(words: Sequence[str], *, is_beginning: bool = False) -> str:
    """Return what finds words beside each other; a word of a query can be several of the index."""
    parts = [part for word in words for part in words_of(word)]
    if not parts:
        return ""
    star = ":*" if is_beginning else ""
    return f"({' <-> '.join(parts)}{star})"


def _joined(queries: Sequence[str], by: str) -> str:
    found = [query for query in queries if query]
    return f"({by.join(found)})" if len(found) > 1 else "".join(found)


def _notation(places: dict[str, list[int]]) -> str:
    return " ".join(f"{word}:{','.join(map(str, at))}" if at else word for word, at in places.items())


def _without_accent(character: str) -> str:
    """Return a character's letter without its accents, nothing for an accent by itself."""
    if character.isascii():
        return character
    if unicodedata.combining(character):
        return ""
    bare = unicodedata.normalize("NFD", character)
    return bare[0] if len(bare) > 1 and unicodedata.combining(bare[1]) else character
