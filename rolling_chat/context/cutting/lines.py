"""Analyze the lines of a text: which are rare, which report problems, which are alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rolling_chat.context.cutting.pieces import Layer, Pieces
from rolling_chat.context.cutting.rarity import Rows, by_rarity, patterns

# Words that report a problem, by severity.
_ALARMS = (
    (
        3,
        re.compile(rb"fatal|panic\w*|critical|crit|emerg(ency)?|segfault|oom|corrupt\w*|traceback|assert\w*"),
    ),
    (
        2,
        re.compile(
            rb"error\w*|err|errno|\w*(error|exception)|exception|fail(s|ed|ure|ures|ing)?|denied|refused|"
            rb"abort\w*|killed|unreachable|undefined|not_ok"
        ),
    ),
    (1, re.compile(rb"warn(ing|ings)?|timeout|timed|deprecat\w*|retry\w*|invalid|missing|unexpected")),
)
# path:12:text, and context lines such as path.py-12-text
FOUND = re.compile(
    r"^(?:((?:[A-Za-z]:)?[^\s:][^:\n]{0,300}?):\d+(?::\d+)?:|([^\s:][^:\n]{0,300}?\.\w{1,8})-\d+-)"
)
_NAME_PARTS = re.compile(rb"[-_.$@#/%+\\]+")
_MAX_ALARM_WORD = 60  # characters; longer words are data
_MAX_ALARMING_SHARE = 0.4  # of the lines: if more report problems, it is nothing unusual


@dataclass(frozen=True)
class Lines:
    """The pieces of a text, with analyses that are computed once, on demand."""

    pieces: Pieces
    are_paths: bool = False

    @property
    def count(self) -> int:
        """The number of pieces."""
        return len(self.pieces.texts)

    @cached_property
    def rows(self) -> Rows:
        """The pieces compared with each other."""
        return Rows(self.pieces.texts, paths=self.are_paths)

    @cached_property
    def pattern(self) -> list[int]:
        """For each piece, the index of the first piece with the same pattern."""
        return patterns(self.rows)

    @cached_property
    def rare(self) -> list[int]:
        """The rare pieces, rarest first."""
        return by_rarity(self.rows.rarity, self.pattern)

    @cached_property
    def alarming(self) -> list[int]:
        """The pieces that report a problem, the worst of each pattern first.

        Empty if such words are all over the text, as in code that handles errors.
        """
        levels = {word: _level(word) for word in self.rows.names}
        alarms = {word: level for word, level in levels.items() if level}
        if not alarms:
            return []
        known = alarms.keys()
        found = [index for index, words in enumerate(self.rows.words) if not known.isdisjoint(words)]
        if len(found) > max(3, self.count * _MAX_ALARMING_SHARE):
            return []
        seen: Counter[int] = Counter()
        order = []
        for index in found:
            level = max(alarms.get(word, 0) for word in self.rows.words[index])
            kind = self.pattern[index]
            order.append((seen[kind].bit_length(), -level, -self.rows.rarity[index], index))
            seen[kind] += 1
        return [index for *_, index in sorted(order)]

    @cached_property
    def examples(self) -> list[int]:
        """The first piece of each pattern, most common patterns first."""
        return [index for index, _ in self.pattern_counts.most_common()]

    @cached_property
    def pattern_counts(self) -> Counter[int]:
        """The number of pieces with each pattern."""
        return Counter(self.pattern)

    @cached_property
    def paths(self) -> list[str]:
        """The path in each piece, whether it is a path or a search result; "" for none."""
        texts = self.pieces.texts
        if self.are_paths:
            return [text.rsplit(None, 1)[-1] if text.strip() else "" for text in texts]
        matches = map(FOUND.match, texts)
        return [(match[1] or match[2]) if match else "" for match in matches]

    @cached_property
    def folders(self) -> list[str]:
        """The folder of each piece's path."""
        return [path.rstrip("/").rpartition("/")[0] for path in self.paths]

    def containing(self, words: frozenset[bytes]) -> list[int]:
        """Return the pieces that contain one of `words`."""
        return [index for index, found in enumerate(self.rows.words) if not words.isdisjoint(found)]


def _nothing(lines: Lines, chosen: Sequence[int]) -> str:  # noqa: ARG001
    return ""


@dataclass(frozen=True, slots=True)
class TextKind:
    """How one kind of text is cut: layers of pieces to keep, and a note about the rest."""

    name: str
    layers: Callable[[Lines], Sequence[Layer]]
    note: Callable[[Lines, Sequence[int]], str] = _nothing
    are_paths: bool = False


def with_continuations(lines: Lines, starts: Sequence[int], limit: int = 60) -> Iterator[int]:
    """Yield each of `starts` with the indented lines that follow it, and the line that ends a traceback."""
    texts = lines.pieces.texts
    for start in starts:
        yield start
        index = start + 1
        while index < lines.count and index - start < limit and _is_continuation(texts[index]):
            yield index
            index += 1
        if index < lines.count and index > start + 1 and "Traceback" in texts[start]:
            yield index


def _is_continuation(text: str) -> bool:
    return text[:1] in (" ", "\t") or text.startswith("Caused by")


def _level(word: bytes) -> int:
    if len(word) > _MAX_ALARM_WORD:
        return 0
    parts = _NAME_PARTS.split(word.lower())
    return max(map(_level_of_part, parts))


def _level_of_part(part: bytes) -> int:
    return next((level for level, words in _ALARMS if words.fullmatch(part)), 0)
