"""Check a summary against its source: it must add nothing foreign and omit nothing distinctive."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass

from rolling_chat.search_terms import content_stems, fold, words_of

MIN_KNOWN_WORDS = 0.5
"""The smallest acceptable share of a summary's content words that occur in its source.

Medians measured on transcripts of ten kinds: models' reports of their own work 0.7; summaries of another
conversation 0.1, or 0.35 if it was about the same kind of task.
"""

MIN_KEPT = 0.5
"""The smallest share of the distinctive names that a model's summary must keep; the rest is added by rule."""

_MAX_FOREIGN = 0.25
"""The largest share of an answer's lines that may be dropped for naming what nobody mentioned."""

MIN_TOUCHED = 0.5
"""The smallest share of the user's messages that a summary must mention: more than a copy of the first."""

_MAX_ASKED = 300  # characters: what follows them in a message is mostly pasted
_MAX_OPENING = 80
_MAX_NAMES_A_MESSAGE = 8
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCE_START = re.compile(r"(?:\A|[.!?:\n•*>#\-\"“(\[]\s*)\Z")

# A word in names: paths, identifiers, versions and addresses are one word.
_TOKEN = re.compile(
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\w)|[^\W_][\w./\\@:+#~-]*\w|[~./\\_]+[\w./\\@:+#~-]*\w|\w"
)
_NUMBER = re.compile(r"\d[\d.,:]*")
_IDENTIFIER = re.compile(r"[_/\\@]|[^\W\d_][.:][^\W\d_]|[a-z\d][A-Z]|\d[^\W\d_]|[^\W\d_]\d")
_POSSESSIVE = re.compile(r"['’]s?\Z")
_LATIN_ABBREVIATION = frozenset({"e.g", "i.e", "a.m", "p.m", "and/or", "either/or", "yes/no", "n/a", "w/o"})

# Words that occur in the summary of any conversation.
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
OF_ANY = frozenset(words_of(_OF_ANY_TEXT))
"""The stems of words common to all summaries: they do not distinguish one from another."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a summary, if anything.

    `foreign` are names and numbers that occur nowhere in its source; `known_words` is the share of its
    content words that do. `missing` are the distinctive names that it lacks, `kept` the share that it has.
    `untouched` are the user's messages that it does not mention, by their beginnings; `touched` is the share
    that it does.
    """

    is_empty: bool = False

    foreign: tuple[str, ...] = ()
    known_words: float = 1.0
    missing: tuple[str, ...] = ()
    kept: float = 1.0
    untouched: tuple[str, ...] = ()
    touched: float = 1.0

    @property
    def is_grounded(self) -> bool:
        """Whether there is a summary and everything in it occurs in its source."""
        return not self.is_empty and not self.foreign and self.known_words >= MIN_KNOWN_WORDS

    @property
    def is_complete(self) -> bool:
        """Whether the summary keeps every distinctive name and mentions enough of the user's messages."""
        return not self.missing and self.touched >= MIN_TOUCHED

    @property
    def is_fair(self) -> bool:
        """Whether it is worth completing by rule: grounded, with enough of what it must contain."""
        return self.is_grounded and self.kept >= MIN_KEPT and self.touched >= MIN_TOUCHED


@dataclass(frozen=True, slots=True)
class Expected:
    """What a summary must contain: `names` as written, and the beginning of each user message."""

    names: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()


def judge(summary: str, source: str | Source, expected: Expected, *, added: str | None = None) -> Verdict:
    """Judge `summary` against its source and its required content.

    With `added`, only that part of it is new and has to be grounded.
    """
    known, said = source if isinstance(source, Source) else Source(source), Source(summary)
    new = summary if added is None else added
    stems = [stem for stem in content_stems(new) if stem not in OF_ANY] if new else []
    known_words = sum(stem in known.stems for stem in stems) / len(stems) if stems else 1.0
    missing = tuple(name for name in expected.names if not said.has(name))
    untouched = tuple(text for text in expected.asked if not said.touches(text))
    return Verdict(
        is_empty=not summary.strip(),
        foreign=known.foreign_in(new),
        known_words=known_words,
        missing=missing,
        kept=_share_kept(missing, expected.names),
        untouched=untouched,
        touched=_share_kept(untouched, expected.asked),
    )


def foreign_lines(lines: Sequence[str], source: Source) -> frozenset[str]:
    """Return the lines with names that `source` lacks; none if there are too many to trust the rest."""
    foreign = frozenset(line for line in lines if source.foreign_in(line))
    return foreign if len(foreign) <= _MAX_FOREIGN * len(lines) else frozenset()


def expect(said: Iterable[str], limit: int, used: Sequence[str] = ()) -> Expected:
    """Determine what a summary must contain: from the user's messages `said`, and names `used` later.

    `limit` bounds the total length of the names. Names used later come first and get half of the limit, or
    what the others leave over.
    """
    messages = [_FENCE.sub(" ", text[: _MAX_ASKED * 2])[:_MAX_ASKED] for text in said]
    new = [name for text in messages for name in names_in(text)[:_MAX_NAMES_A_MESSAGE]]
    room_for_used = max(limit // 2, limit - sum(len(name) for name in new))
    kept = list(_fitting(used, room_for_used))
    kept += _fitting([name for name in new if name not in kept], limit - sum(map(len, kept)))
    return Expected(tuple(dict.fromkeys(kept)), tuple(dict.fromkeys(filter(None, map(_opening, messages)))))


def names_used(text: str, later: Iterable[str]) -> list[str]:
    """Return the names in `text` that occur in `later` texts, most frequent first."""
    known = {plain_name(name): name for name in names_in(text)}
    uses = Counter(name for one in later for name in map(plain_name, names_in(one)) if name in known)
    return [known[name] for name, _ in uses.most_common()]


def specificity(name: str) -> float:
    """Return how hard a name is to guess, from 1 for short numbers and capitals to 3 for paths and codes."""
    if _NUMBER.fullmatch(name):
        return 3.0 if sum(char.isdigit() for char in name) > 2 else 1.0
    if _IDENTIFIER.search(name):
        return 3.0
    return 1.0 if name.isupper() else 2.0


def names_in(text: str) -> list[str]:
    """Return the distinctive names and numbers of `text`, each once, in order.

    These are paths, identifiers, versions, numbers of two or more digits, and capitalized words that do not
    begin a sentence.
    """
    found: dict[str, str] = {}
    for match in _TOKEN.finditer(text):
        name = _POSSESSIVE.sub("", match.group()).rstrip(".:-")
        if name and _is_distinctive(name, text, match.start()):
            found.setdefault(plain_name(name), name)
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


def _share_kept(without: Sized, all_of: Sized) -> float:
    return 1.0 - len(without) / len(all_of) if len(all_of) else 1.0


class Source:
    """A text prepared for lookups of names and words."""

    def __init__(self, text: str) -> None:
        self._text = fold(text)
        self._tokens = {plain_name(match.group()) for match in _TOKEN.finditer(text)}
        self.stems = frozenset(words_of(text))

    def has(self, name: str) -> bool:
        """Return whether a name occurs; as the end of a path or another form of a plain word, too."""
        plain = plain_name(name)
        if plain in self._tokens:
            return True
        if _NUMBER.fullmatch(name):
            return any(plain in _digits(token) for token in self._tokens if not token.isalpha())
        if _IDENTIFIER.search(name):
            last = re.split(r"[/\\]", plain)[-1]
            return plain in self._text or (len(last) > 2 and last in self._text)
        return set(words_of(name)) <= self.stems

    def foreign_in(self, text: str) -> tuple[str, ...]:
        """Return the names in `text` that do not occur."""
        return tuple(name for name in names_in(text) if not self.has(name))

    def touches(self, text: str) -> bool:
        """Return whether any content word of `text` occurs."""
        return not self.stems.isdisjoint(_own_stems(text))


def _own_stems(text: str) -> list[str]:
    return [stem for stem in content_stems(text) if stem not in OF_ANY and len(stem) > 2]


def _opening(text: str) -> str:
    """Return the first words of a user message; empty if none of them is distinctive."""
    line = " ".join(text.split())
    opening = line if len(line) <= _MAX_OPENING else line[:_MAX_OPENING].rpartition(" ")[0]
    return opening if _own_stems(opening) else ""


def plain_name(name: str) -> str:
    """Return the normalized form of a name for comparison; numbers lose their separators."""
    folded = fold(name).rstrip(".:-")
    return folded.replace(",", "") if _NUMBER.fullmatch(folded) else folded


def _digits(token: str) -> Iterable[str]:
    return (part.replace(",", "").rstrip(".:") for part in _NUMBER.findall(token))


def _fitting(names: Iterable[str], room: int) -> Iterator[str]:
    for name in names:
        room -= len(name)
        if room >= 0:
            yield name
