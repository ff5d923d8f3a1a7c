"""The words of a search, as every store reads them: phrases, words and beginnings of words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_RANKED = 200
"""Messages of which those that answer best come first."""

MIN_BEGINNING = 3
"""Letters that begin a word: fewer begin too many words."""

_MAX_WORDS = 32
_MAX_LETTERS = 64
_TERM = re.compile(r'"([^"]+)"|[^\s"]+')
# scripts written without spaces begin here (CJK radicals): an index takes a whole run for a word. It is
# compiled when somebody searches: that takes as long as opening the store.
_UNSPACED = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"


@dataclass(frozen=True, slots=True)
class Term:
    """Words that are looked for: as a phrase, or each by itself; the last may only begin a word."""

    words: tuple[str, ...]
    is_phrase: bool = False
    is_beginning: bool = False

    def may_begin(self) -> bool:
        """Return whether words that only begin so are looked for as well: none of these is too short."""
        return all(len(word) >= MIN_BEGINNING for word in self.words)


def read_query(words: str) -> list[Term]:
    """Split a query into its terms. "Words in quotes" stand together; `word*` begins one.

    Any text is a query, and nothing in it is an operator.
    """
    terms = []
    for match in _TERM.finditer(words):
        phrase, star = match[1] is not None, match[0].endswith("*")
        parts = tuple(word[:_MAX_LETTERS] for word in re.findall(r"\w+", match[1] if phrase else match[0]))
        if parts:
            terms.append(Term(parts[:_MAX_WORDS], phrase and len(parts) > 1, star and not phrase))
        if len(terms) == _MAX_WORDS:
            break
    return terms


def all_words(terms: Iterable[Term]) -> list[str]:
    """Return every word of a query."""
    return [word for term in terms for word in term.words]


def is_unspaced(terms: Iterable[Term]) -> bool:
    """Return whether a word is in a script without spaces, whose words no index knows."""
    return any(re.search(_UNSPACED, word) for word in all_words(terms))


def content_forms(terms: Sequence[Term]) -> list[str]:
    """Return the beginnings that find any form of a query's single words, without words that say nothing."""
    # its patterns take as long to compile as opening the store
    from rolling_chat.search_terms import content_stems  # noqa: PLC0415

    stems = content_stems(" ".join(all_words(term for term in terms if not term.is_phrase)))
    return [stem for stem in stems if len(stem) >= MIN_BEGINNING]


def marked(terms: Sequence[Term]) -> list[tuple[str, ...]]:
    """Return what is marked in the line of a hit: phrases, then single words."""
    phrases = [term.words for term in terms if term.is_phrase]
    return phrases + [(word,) for word in all_words(term for term in terms if not term.is_phrase)]
