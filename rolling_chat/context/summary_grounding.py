"""Check a summary against its source: nothing foreign in it, nothing distinctive left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass

from rolling_chat.search_terms import content_stems, fold, words_of

MIN_KNOWN_WORDS = 0.5
"""The least share of a summary's content words that occur in what it was made of.

Measured on transcripts of ten kinds, medians: reports that models wrote of their own work 0.7; summaries of
another conversation 0.1, and 0.35 where that one was about the same kind of task.
"""

MIN_KEPT = 0.75
"""The least share of the distinctive names that a repaired summary keeps."""

MIN_TOUCHED = 0.5
"""The least share of the user's messages of which a summary says anything: more than a copy of the first."""

_ASKED = 300  # characters: what comes after them in a message is mostly pasted
_OPENING = 80
_MAX_NAMES_A_MESSAGE = 8
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCE_START = re.compile(r"(?:\A|[.!?:\n•*>#\-\"“(\[]\s*)\Z")

# A word as names are written: paths, identifiers, versions and addresses are one.
_TOKEN = re.compile(
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)|[^\W_][\w./\\@:+#~-]*\w|[~./\\_]+[\w./\\@:+#~-]*\w|\w"
)
_NUMBER = re.compile(r"\d[\d.,:]*")
_IDENTIFIER = re.compile(r"[_/\\@]|[^\W\d_][.:][^\W\d_]|[a-z\d][A-Z]|\d[^\W\d_]|[^\W\d_]\d")
_POSSESSIVE = re.compile(r"['’]s?\Z")
_LATIN_ABBREVIATION = frozenset({"e.g", "i.e", "a.m", "p.m", "and/or", "either/or", "yes/no", "n/a", "w/o"})

# What a summary says of any conversation.
_OF_ANY_TEXT = """
    add address agree already answer approach ask assistant available cause change check complete confirm
    consider contain context conversation create current decide decision describe detail determine discuss
    done error example exist expect explain fact file find follow further give goal handle help include
    indicate information initial inform instead involve issue keep key last list main make mention message
    name need new next note offer old older open option original output pending plan point previous
    problem process propose provide question read reason recommend refer remain remaining reply report
    request require resolve respond response result return review say see set show solution solve start
    state statement status step still suggest suggestion summarize summary support take talk task tell topic
    try understand unresolved update use user want way work write answered asked asking found gave made
    wrote given told wants files errors"""
_OF_ANY = frozenset(words_of(_OF_ANY_TEXT))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Report what is wrong with a summary, if anything.

    `foreign` are its names and numbers that occur nowhere in what it was made of, `known_words` is the share
    of its content words that do. `missing` are the distinctive names that it leaves out and `kept` the share
    of them that it holds; `untouched` are the user's messages that it says nothing of, by how they begin, and
    `touched` the share of the others.
    """

    foreign: tuple[str, ...] = ()
    known_words: float = 1.0
    missing: tuple[str, ...] = ()
    kept: float = 1.0
    untouched: tuple[str, ...] = ()
    touched: float = 1.0

    @property
    def is_grounded(self) -> bool:
        """Return whether everything in the summary occurs in its source."""
        return not self.foreign and self.known_words >= MIN_KNOWN_WORDS

    @property
    def is_complete(self) -> bool:
        """Return whether the summary keeps every distinctive name and something of what the user said."""
        return not self.missing and self.touched >= MIN_TOUCHED

    @property
    def is_fair(self) -> bool:
        """Return whether it is good enough after a correction: grounded, and complete but for a few names."""
        return self.is_grounded and self.kept >= MIN_KEPT and self.touched >= MIN_TOUCHED


@dataclass(frozen=True, slots=True)
class Expected:
    """List what a summary must contain: `names` as written, and how each user message begins."""

    names: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()


def judge(summary: str, source: str, expected: Expected) -> Verdict:
    """Judge `summary` against its source text and what it must contain."""
    known, said = _Known(source), _Known(summary)
    stems = [stem for stem in content_stems(summary) if stem not in _OF_ANY]
    known_words = sum(stem in known.stems for stem in stems) / len(stems) if stems else 1.0
    missing = tuple(name for name in expected.names if not said.has(name))
    untouched = tuple(text for text in expected.asked if not said.touches(text))
    return Verdict(
        foreign=tuple(name for name in names_in(summary) if not known.has(name)),
        known_words=known_words,
        missing=missing,
        kept=_rest(missing, expected.names),
        untouched=untouched,
        touched=_rest(untouched, expected.asked),
    )


def expect(previous: str, said: Iterable[str], limit: int) -> Expected:
    """Determine what a summary must contain of the previous one and of the user's messages `said`.

    `limit` bounds the characters of the names: the older summary and the messages have half of them each,
    or what the other leaves.
    """
    messages = [_FENCE.sub(" ", text[: _ASKED * 2])[:_ASKED] for text in said]
    new = [name for text in messages for name in names_in(text)[:_MAX_NAMES_A_MESSAGE]]
    old = names_in(previous)
    half = limit // 2
    room_for_old = max(half, limit - sum(len(name) for name in new))
    kept = list(_within(old, room_for_old))
    kept += _within([name for name in new if name not in kept], limit - sum(map(len, kept)))
    return Expected(tuple(dict.fromkeys(kept)), tuple(dict.fromkeys(filter(None, map(_opening, messages)))))


def names_in(text: str) -> list[str]:
    """The distinctive names and numbers of `text`, each once, in order.

    Paths, identifiers, versions, numbers of two digits or more, and words with a capital letter that do not
    begin a sentence.
    """
    found: dict[str, str] = {}
    for match in _TOKEN.finditer(text):
        name = _POSSESSIVE.sub("", match.group()).rstrip(".:-")
        if name and _is_distinctive(name, text, match.start()):
            found.setdefault(_plain(name), name)
    return list(found.values())


def _is_distinctive(name: str, text: str, start: int) -> bool:
    if _NUMBER.fullmatch(name):
        return sum(char.isdigit() for char in name) > 1
    if fold(name) in _LATIN_ABBREVIATION:
        return False
    if _IDENTIFIER.search(name):
        return len(name) > 2
    if not name[0].isupper() or len(name) < 3:
        return False
    if name.isupper():
        return True
    return not _SENTENCE_START.search(text[max(0, start - 4) : start])


def _rest(without: Sized, all_of: Sized) -> float:
    return 1.0 - len(without) / len(all_of) if len(all_of) else 1.0


class _Known:
    """A text, to be asked for names and words."""

    def __init__(self, text: str) -> None:
        self._text = fold(text)
        self._tokens = {_plain(match.group()) for match in _TOKEN.finditer(text)}
        self.stems = frozenset(words_of(text))

    def has(self, name: str) -> bool:
        """Does the name occur, also as the end of a path, or a plain word in another form?"""
        plain = _plain(name)
        if plain in self._tokens:
            return True
        if _NUMBER.fullmatch(name):
            return any(plain in _digits(token) for token in self._tokens if not token.isalpha())
        if _IDENTIFIER.search(name):
            last = re.split(r"[/\\]", plain)[-1]
            return plain in self._text or (len(last) > 2 and last in self._text)
        return set(words_of(name)) <= self.stems

    def touches(self, text: str) -> bool:
        """Does any content word of `text` occur?"""
        return not self.stems.isdisjoint(_own_stems(text))


def _own_stems(text: str) -> list[str]:
    return [stem for stem in content_stems(text) if stem not in _OF_ANY and len(stem) > 2]


def _opening(text: str) -> str:
    """The first words of a message of the user; empty where none of them is its own to be known by."""
    line = " ".join(text.split())
    opening = line if len(line) <= _OPENING else line[:_OPENING].rpartition(" ")[0]
    return opening if _own_stems(opening) else ""


def _plain(name: str) -> str:
    """A name as it is compared: numbers without separators."""
    folded = fold(name).rstrip(".:-")
    return folded.replace(",", "") if _NUMBER.fullmatch(folded) else folded


def _digits(token: str) -> Iterable[str]:
    return (part.replace(",", "").rstrip(".:") for part in _NUMBER.findall(token))


def _within(names: Iterable[str], room: int) -> Iterator[str]:
    for name in names:
        room -= len(name)
        if room >= 0:
            yield name
