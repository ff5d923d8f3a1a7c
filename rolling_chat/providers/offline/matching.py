"""Find the sentences of a prompt that best match a question, by its rarer words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"\w+", re.UNICODE)
_ENDS = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n+")
_MAX_SENTENCE = 400  # characters; longer lines are cut, because a minified file is one sentence
_STOP_WORDS_TEXT = """
    a about after all also am an and any are as at be because been before but by can could did do does for
    from give had has have he her him his how i if in into is it its just know let like many me mine more
    most much my no not now of on one only or other our out please say she should show so some tell than
    that the their them then there these they this those to too us use very was we were what when where
    which who whom whose why will with would you your yours again earlier said find remember mention
    mentioned told"""
_STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence or line of the prompt, and its index."""

    text: str
    index: int
    words: frozenset[str]


def content_words(text: str) -> list[str]:
    """Return the words of `text` that carry meaning, in lower case and without a plural s."""
    return [_stem(word) for word in map(str.lower, _WORD.findall(text)) if word not in _STOP_WORDS]


def split_sentences(text: str) -> list[str]:
    """Return the sentences and lines of `text`, without empty ones, limited in length."""
    pieces = (piece.strip() for piece in _ENDS.split(text))
    return [piece[:_MAX_SENTENCE] for piece in pieces if piece]


def read_sentences(texts: Iterable[str]) -> list[Sentence]:
    """Return every sentence of `texts` in order, without duplicates."""
    found: list[Sentence] = []
    seen: set[str] = set()
    for text in texts:
        for piece in split_sentences(text):
            if piece not in seen:
                seen.add(piece)
                found.append(Sentence(piece, len(found), frozenset(content_words(piece))))
    return found


def best_matches(
    question: str, sentences: Sequence[Sentence], limit: int = 3, *, min_share: float = 0.5
) -> list[Sentence]:
    """Return the sentences that contain enough of the question's rarer words, in the order of the prompt.

    Enough is `min_share` of the question's weight; a word weighs more if fewer sentences have it. Among
    equals, the newer one wins, because later statements correct earlier ones.
    """
    wanted = set(content_words(question))
    if not wanted:
        return []
    sentence_counts = Counter(word for sentence in sentences for word in sentence.words & wanted)
    # a word that occurs nowhere counts no more than one that occurs in a single sentence
    weight = {word: math.log(1 + len(sentences) / max(1, sentence_counts[word])) for word in wanted}
    total = sum(weight.values())
    scored = [
        (sum(weight[word] for word in sentence.words & wanted) / total, sentence.index, sentence)
        for sentence in sentences
        if sentence.words & wanted
    ]
    good = sorted((entry for entry in scored if entry[0] >= min_share), reverse=True)[:limit]
    if not good:
        return []
    near_best = [sentence for score, _place, sentence in good if score >= 0.75 * good[0][0]]
    return sorted(near_best, key=lambda sentence: sentence.index)


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
