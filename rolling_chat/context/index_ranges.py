"""Sets of omitted messages, stored as index ranges so that long conversations stay small."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

Range = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class IndexRanges:
    """The indexes of omitted messages as sorted, disjoint ranges, each with the layer that omitted it.

    Each part is `(start, stop, layer)`; adjacent ranges of one layer are merged."""

    parts: tuple[Range, ...] = ()

    def get(self, index: int) -> str | None:
        """Return the layer that omitted `index`; None if it is not omitted."""
        position = bisect_right(self.parts, index, key=lambda part: part[0]) - 1
        if position >= 0 and index < self.parts[position][1]:
            return self.parts[position][2]
        return None

    @property
    def end(self) -> int:
        """The index after the last range; 0 if there is none."""
        return self.parts[-1][1] if self.parts else 0

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and self.get(index) is not None

    def __len__(self) -> int:
        return sum(stop - start for start, stop, _ in self.parts)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for start, stop, layer in self.parts:
            for index in range(start, stop):
                yield index, layer

    def gaps(self, first: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the `(start, end)` of each gap between ranges, from index `first` to `stop`."""
        for start, end, _ in self.parts:
            if end <= first:
                continue
            if start >= stop:
                break
            if start > first:
                yield first, start
            first = end
        if first < stop:
            yield first, stop

    def with_gaps_filled(self, first: int, stop: int, layer: str, without: Set[int]) -> IndexRanges:
        """Return the ranges with all gaps from `first` to `stop` given to `layer`, except for `without`."""
        added: list[Range] = []
        for start, end in self.gaps(first, stop):
            kept = sorted(index for index in without if start <= index < end)
            stops = (*kept, end)
            added += (
                (start, stop, layer)
                for start, stop in zip((start, *(one + 1 for one in kept)), stops, strict=True)
            )
        parts = sorted((*self.parts, *(part for part in added if part[0] < part[1])))
        return IndexRanges(tuple(_joined(parts)))

    def of(self, layer: str) -> int:
        """Return how many indexes `layer` omitted."""
        return sum(stop - start for start, stop, owner in self.parts if owner == layer)

    def relabeled(self, first: int, end: int, layer: str) -> IndexRanges:
        """Return the same indexes, with those from `first` to `end` reassigned to `layer`."""
        parts: list[Range] = []
        for start, stop, owner in self.parts:
            inside = max(start, first), min(stop, end)
            if inside[0] >= inside[1]:
                parts.append((start, stop, owner))
                continue
            cut = ((start, inside[0], owner), (*inside, layer), (inside[1], stop, owner))
            parts += (part for part in cut if part[0] < part[1])
        return IndexRanges(tuple(_joined(parts)))

    def without(self, indexes: Set[int]) -> IndexRanges:
        """Return the ranges without `indexes`."""
        if not any(index in self for index in indexes):
            return self
        kept = ((index, index + 1, layer) for index, layer in self if index not in indexes)
        return IndexRanges(tuple(_joined(kept)))

    def add(self, pairs: Iterable[tuple[int, str]]) -> IndexRanges:
        """Return the ranges with new `(index, layer)` pairs, none of which may be included yet."""
        fresh = [(index, index + 1, layer) for index, layer in pairs]
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
