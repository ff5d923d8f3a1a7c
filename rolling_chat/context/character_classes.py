"""Estimate tokens by character class, for models whose tokenizer is not available.

No single ratio of characters to tokens works: minified JSON, base64, logs full of UUIDs, Chinese and emoji
each miss it by a factor of two to four. The weights below were fitted so that the count stays at or above
cl100k, o200k and Claude 2 on each of those kinds of text, and close to them on prose and code.
"""

from __future__ import annotations

import re

# Order matters: long mixed runs (base64, hashes, UUIDs) must match before the words inside them.
_KINDS = {
    "blob": r"(?=[A-Za-z+/=_-]{0,40}[0-9])[A-Za-z0-9+/=_-]{24,}|[A-Za-z+/]{40,}",
    "number": r"[ \t]++[0-9]{1,2}(?![A-Za-z0-9+/=_-])",
    "word": r"[A-Za-z]+",
    "digits": r"[0-9]+",
    "blank": r"[ \t\r\n\f\v]+",
    "marks": r"[!-/:-@\[-`{-~]+",
    "wide": r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]+",
    "latin": r"[\u00a1-\u024f\u0370-\u052f]+",
    "astral": r"[\U00010000-\U0010ffff]+",
    "other": r"[^\x21-\x7e]",
}
_KIND = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))
# The most common runs come first: white space, and words that end before they could be a blob. Short numbers
# include the spaces before them.
_NOT_BLOB = r"{1,23}+(?![A-Za-z0-9+/=_-])"
_RUNS = re.compile(
    "|".join(
        (_KINDS["number"], _KINDS["blank"], f"[A-Za-z]{_NOT_BLOB}", f"[0-9]{_NOT_BLOB}", *_KINDS.values())
    )
)
# A list of runs takes many times the memory of the text, so those of a longer text are iterated.
_LONG_TEXT = 1_000_000  # characters

_CONSONANTS = re.compile(r"[b-df-hj-np-tv-xzB-DF-HJ-NP-TV-XZ]{5,}")


def count_by_class(text: str) -> int:
    """Estimate the tokens of `text` by character class, in linear time; at most its number of UTF-8 bytes."""
    runs = _RUNS.findall(text) if len(text) < _LONG_TEXT else map(re.Match.group, _RUNS.finditer(text))
    total = sum(map(_Weights().__getitem__, runs))
    return min(int(total + 0.999), len(text.encode("utf-8", "surrogatepass")))


class _Weights(dict[str, float]):
    """Token weights by run, each computed once, because the same words recur."""

    def __missing__(self, run: str) -> float:
        match = _KIND.match(run)
        weight = _weigh((match and match.lastgroup) or "", len(run), run)
        self[run] = weight
        return weight


def _weigh(kind: str, length: int, run: str) -> float:
    match kind:
        case "word":
            return _word_weight(length, run)
        case "number":
            return 2.0 if run[1].isdigit() else 3.0  # a space merges with a following word, not with digits
        case "digits":
            return (length + 1) / 2
        case "blank":
            return _blank_weight(length, run)
        case "marks":
            return _mark_weight(length, run)
        case "wide":
            return 1.5 * length
        case "blob":
            return 0.85 * length
        case "latin":
            return 0.85 * length + 0.5
        case "astral":
            return 4.0 * length
        case _:
            return 2.5


def _word_weight(length: int, run: str) -> float:
    # camelCase names and capitalized words split into more tokens than prose does
    capitals = sum(map(str.isupper, run)) if not run.islower() else 0
    if capitals > 1:
        return max(1.0, length / 2.2)
    if length > 5 and _CONSONANTS.search(run):
        return length / 1.7
    return 1.0 if length <= 4 else 1.0 + (length - 4) / 7


def _mark_weight(length: int, run: str) -> float:
    # a ruler of one repeated character is few tokens; mixed marks are a token each
    if length > 3 and len(set(run)) <= 2:
        return 3 + 0.5 * (length - 3)
    return 1.05 * length


def _blank_weight(length: int, run: str) -> float:
    if length == 1 and run == " ":
        return 0.05  # a single space merges with the word that follows
    newlines = run.count("\n")
    return 0.4 + 0.8 * newlines + (length - newlines) / 12
