"""Rarity: how much each row of a text differs from the others, whatever the rows are.

A row is looked at in several ways: its words by position among rows of as many words, its shape, its
length, and the words that few other rows have. In each way a value counts by how rare it is beyond what is
usual there: one exception in a column that is always the same counts most, and an id that is different in
every row counts nothing. No word list and no format is known here.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence

_ALNUM = bytes(range(48, 58)) + bytes(range(65, 91)) + bytes(range(97, 123)) + bytes(range(128, 256))
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_IN_NAMES = b"_-+.%$@#/\\"
# what stands between words: all ASCII that is neither alphanumeric nor part of names and numbers
_BETWEEN = bytes(code for code in range(128) if code not in _ALNUM and code not in _IN_NAMES)
_WORDS = bytes.maketrans(_BETWEEN, b" " * len(_BETWEEN))
_PATH_WORDS = bytes.maketrans(_BETWEEN + b"/\\.", b" " * (len(_BETWEEN) + 3))
_MIN_COLUMN = 6  # rows from which a column of words is compared
_MAX_WORDS = 64  # of a row that are compared by position
_MAX_DIFFERENT = 0.6  # a column in which more values differ tells nothing
_SAMPLE = 2000  # rows by which that is seen
_FEW = 40  # different values, such as status codes, are compared as they are; of more numbers only the size
_NOISE = 0.3  # what is hardly rarer than usual
_OTHERS = 0.15  # the share at which the lesser ways in which a row is rare count


class Rows:
    """Hold the rows of a text with their words, their shapes and their rarity."""

    def __init__(self, rows: Sequence[str], *, paths: bool = False) -> None:
        """Compare `rows`; `paths` are taken apart at their folders."""
        table = _PATH_WORDS if paths else _WORDS
        encoded = [row.encode("utf-8", "surrogatepass") for row in rows]
        self.words = [row.translate(table).split() for row in encoded]
        self.shapes = [row.translate(None, _ALNUM + b" \t") for row in encoded]
        self.vocabulary = Counter(itertools.chain.from_iterable(self.words))
        self.names = {word for word in self.vocabulary if word.translate(None, _IN_NAMES).isalpha()}
        self._best = [0.0] * len(rows)
        self._sum = [0.0] * len(rows)
        self._compare()
        self.rarity = [
            best + _OTHERS * (total - best) for best, total in zip(self._best, self._sum, strict=True)
        ]

    def _compare(self) -> None:
        everything = range(len(self.words))
        self._count(everything, self.shapes)
        self._count(everything, [min(len(words), _MAX_WORDS) for words in self.words])
        counts = self._rare_words()
        self._add(everything, counts, _beyond(counts))
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for index, words in enumerate(self.words):
            groups[len(words)].append(index)
        for size, members in groups.items():
            if not size or len(members) < _MIN_COLUMN:
                continue
            for column in zip(*[self.words[index][:_MAX_WORDS] for index in members], strict=True):
                self._count(members, _comparable(column))

    def _count(self, members: Sequence[int], column: Sequence[Hashable]) -> None:
        self._add(members, column, gains(column))

    def _add(
        self, members: Sequence[int], column: Sequence[Hashable], gain: Mapping[Hashable, float]
    ) -> None:
        if not gain:
            return
        best, total = self._best, self._sum
        for index, found in zip(members, column, strict=True):
            if found in gain:
                value = gain[found]
                total[index] += value
                best[index] = max(best[index], value)

    def _rare_words(self) -> list[int]:
        """Return how many words each row has that hardly any other row has."""
        most = max(1, len(self.words) // 1000)
        few = {word for word in self.names if self.vocabulary[word] <= most}
        return [len(few.intersection(words)) for words in self.words]


def _comparable(column: Sequence[bytes]) -> Sequence[bytes]:
    """Return a column whose numbers are replaced by their lengths, unless it has few values."""
    if len(set(column[:: 1 + len(column) // _SAMPLE])) <= _FEW:
        return column
    return b" ".join(column).translate(_DIGITS).split(b" ")


def gains(column: Sequence[Hashable]) -> dict[Hashable, float]:
    """Return how much rarer values are than values of the column on average; only those that are.

    In a column of regular values the difference counts whole, in one where all values differ not at all.
    """
    total = len(column)
    sample = column[:: 1 + total // _SAMPLE]
    if len(set(sample)) > len(sample) * _MAX_DIFFERENT:
        return {}
    counts = Counter(column)
    if len(counts) == 1 or len(counts) > total * _MAX_DIFFERENT:
        return {}
    most = math.log(total)
    usual = most - sum(count * math.log(count) for count in counts.values()) / total
    regular = 1 - usual / most
    gain = {value: (most - math.log(count) - usual) * regular for value, count in counts.items()}
    return {value: much for value, much in gain.items() if much > _NOISE}


def _beyond(counts: Sequence[int]) -> dict[Hashable, float]:
    """Return for each count how rare it is to be as high, in the same measure."""
    known = Counter(counts)
    total, above = len(counts), 0
    gain: dict[Hashable, float] = {}
    for count in sorted(known, reverse=True):
        above += known[count]
        # a tail of chances falls off by 1 on average: only what is beyond that is unusual
        much = math.log(total / above) - 1
        if count and much > _NOISE:
            gain[count] = much
    return gain


def patterns(rows: Rows) -> list[int]:
    """Return for each row the index of the first one of the same pattern: shape and common words alike."""
    least = max(2, len(rows.words) // 500)
    common = {word for word in rows.names if rows.vocabulary[word] >= least}
    first: dict[tuple[bytes, tuple[bytes, ...]], int] = {}
    is_common = common.__contains__
    return [
        first.setdefault((shape, tuple(filter(is_common, words))), index)
        for index, (shape, words) in enumerate(zip(rows.shapes, rows.words, strict=True))
    ]


def by_rarity(rarity: Sequence[float], pattern: Sequence[int]) -> list[int]:
    """Return the rows that are rare at all, rarest first; the more of a pattern came before, the later."""
    seen: Counter[int] = Counter()
    weights: list[tuple[float, int]] = []
    for index, value in enumerate(rarity):
        if value <= 0:
            continue
        kind = pattern[index]
        weights.append((-value / (1 + math.log1p(seen[kind])), index))
        seen[kind] += 1
    weights.sort()
    return [index for _, index in weights]
