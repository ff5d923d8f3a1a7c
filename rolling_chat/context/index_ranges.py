"""Which indexes of a branch were left out, as few ranges whatever the length of the branch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

Range = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class IndexRanges:
    """Places by the layer that took them: sorted, disjoint `(start, stop, layer)`, neighbours of one
    layer joined."""

    parts: tuple[Range, ...] = ()

    def get(self, index: int) -> str | None:
        """The layer that took `index`, or None."""
        position = bisect_right(self.parts, index, key=lambda part: part[0]) - 1
        if position >= 0 and index < self.parts[position][1]:
            return self.parts[position][2]
        return None

    @property
    def end(self) -> int:
        """The index behind the last one held; 0 where none is."""
        return self.parts[-1][1] if self.parts else 0

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and self.get(index) is not None

    def __len__(self) -> int:
        return sum(stop - start for start, stop, _ in self.parts)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for start, stop, layer in self.parts:
            for index in range(start, stop):
                yield index, layer

    def of(self, layer: str) -> int:
        """How many indexes `layer` took."""
        return sum(stop - start for start, stop, taker in self.parts if taker == layer)

    def relabeled(self, end: int, layer: str) -> IndexRanges:
        """The same indexes, those before `end` taken by `layer`."""
        parts: list[Range] = []
        for start, stop, taker in self.parts:
            if start < end:
                parts.append((start, min(stop, end), layer))
            if stop > end:
                parts.append((max(start, end), stop, taker))
        return IndexRanges(tuple(_joined(parts)))

    def without(self, indexes: Set[int]) -> IndexRanges:
        """These but for `indexes`."""
        if not any(index in self for index in indexes):
            return self
        left = ((index, index + 1, layer) for index, layer in self if index not in indexes)
        return IndexRanges(tuple(_joined(left)))

    def add(self, taken: Iterable[tuple[int, str]]) -> IndexRanges:
        """These and `taken`, `(index, layer)` pairs that are not among them yet."""
        fresh = [(index, index + 1, layer) for index, layer in taken]
        if not fresh:
            return self
        return IndexRanges(tuple(_joined(sorted((*self.parts, *fresh)))))


def _joined(parts: Iterable[Range]) -> Iterator[Range]:
    current: Range | None = None
    for start, stop, layer in parts:
        if current is not None and current[1] == start and current[2] == layer:
            current = (current[0], stop, layer)
            continue
        if current is not None:
            yield current
        current = (start, stop, layer)
    if current is not None:
        yield current
