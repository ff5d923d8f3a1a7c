"""Rate how much each row of a text differs from the others, for any kind of row.

A row is compared in several ways: its words by position among rows with the same number of words, its shape,
its length, and the words that few other rows have. A value counts by how much rarer it is than usual there:
one exception in a column that is otherwise constant counts most, and an id that differs in every row counts
nothing. No word list or format is built in.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence

_ALNUM = bytes(range(48, 58)) + bytes(range(65, 91)) + bytes(range(97, 123)) + bytes(range(128, 256))
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_IN_NAMES = b"_-+.%$@#/\\"
# characters between words: all ASCII that is neither alphanumeric nor part of names and numbers
_BETWEEN = bytes(code for code in range(128) if code not in _ALNUM and code not in _IN_NAMES)
_WORDS = bytes.maketrans(_BETWEEN, b" " * len(_BETWEEN))
_PATH_WORDS = bytes.maketrans(_BETWEEN + b"/\\.", b" " * (len(_BETWEEN) + 3))
_MIN_COLUMN = 6  # rows from which a column of words is compared
_MAX_WORDS = 64  # words of a row that are compared by position
_MAX_DIFFERENT = 0.6  # a column with a larger share of distinct values says nothing
_SAMPLE = 2000  # rows that are sampled to find out
_MAX_EXACT_VALUES = (
    40  # distinct values, such as status codes, compared as they are; of more values, numbers by length
)
_NOISE = 0.3  # the gain of a value that is hardly rarer than usual
_OTHER_GAINS_WEIGHT = 0.15  # the weight of a row's other gains, beside its largest


class Rows:
    """The rows of a text with their words, shapes and rarity."""

    def __init__(self, rows: Sequence[str], *, paths: bool = False) -> None:
        """Compare `rows`; `paths` are split at their folders."""
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
            best + _OTHER_GAINS_WEIGHT * (total - best)
            for best, total in zip(self._best, self._sum, strict=True)
        ]

    def _compare(self) -> None:
        everything = range(len(self.words))
        self._count(everything, self.shapes)
        self._count(everything, [min(len(words), _MAX_WORDS) for words in self.words])
        counts = self._rare_words()
        self._add(everything, counts, _tail_gains(counts))
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
        """Return for each row the number of its words that hardly any other row has."""
        max_rows = max(1, len(self.words) // 1000)
        rare = {word for word in self.names if self.vocabulary[word] <= max_rows}
        return [len(rare.intersection(words)) for words in self.words]


def _comparable(column: Sequence[bytes]) -> Sequence[bytes]:
    """Return the column with all digits equal, so that numbers compare by length, unless values are few."""
    if len(set(column[:: 1 + len(column) // _SAMPLE])) <= _MAX_EXACT_VALUES:
        return column
    return b" ".join(column).translate(_DIGITS).split(b" ")


def gains(column: Sequence[Hashable]) -> dict[Hashable, float]:
    """Return how much rarer values are than the average value of the column, for those that are.

    The difference counts fully in a regular column, and not at all where all values differ.
    """
    total = len(column)
    sample = column[:: 1 + total // _SAMPLE]
    if len(set(sample)) > len(sample) * _MAX_DIFFERENT:
        return {}
    counts = Counter(column)
    if len(counts) == 1 or len(counts) > total * _MAX_DIFFERENT:
        return {}
    max_gain = math.log(total)
    average = max_gain - sum(count * math.log(count) for count in counts.values()) / total
    regularity = 1 - average / max_gain
    gain = {value: (max_gain - math.log(count) - average) * regularity for value, count in counts.items()}
    return {value: value_gain for value, value_gain in gain.items() if value_gain > _NOISE}


def _tail_gains(counts: Sequence[int]) -> dict[Hashable, float]:
    """Return for each count how unusually high it is, on the same scale as `gains`."""
    known = Counter(counts)
    total, above = len(counts), 0
    gain: dict[Hashable, float] = {}
    for count in sorted(known, reverse=True):
        above += known[count]
        # the logarithm of a random tail falls by 1 on average: only more than that is unusual
        value_gain = math.log(total / above) - 1
        if count and value_gain > _NOISE:
            gain[count] = value_gain
    return gain


def patterns(rows: Rows) -> list[int]:
    """Return for each row the index of the first row with the same pattern: shape and common words."""
    min_rows = max(2, len(rows.words) // 500)
    common = {word for word in rows.names if rows.vocabulary[word] >= min_rows}
    first: dict[tuple[bytes, tuple[bytes, ...]], int] = {}
    is_common = common.__contains__
    return [
        first.setdefault((shape, tuple(filter(is_common, words))), index)
        for index, (shape, words) in enumerate(zip(rows.shapes, rows.words, strict=True))
    ]


def by_rarity(rarity: Sequence[float], pattern: Sequence[int]) -> list[int]:
    """Return the rare rows, rarest first; repeated patterns move down with each repetition."""
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
