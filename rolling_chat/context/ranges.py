"""Which places of a branch were left out, as few ranges whatever the length of the branch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

Range = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Ranges:
    """Places by the layer that took them: sorted, disjoint `(start, stop, layer)`, neighbours of one
    layer joined."""

    parts: tuple[Range, ...] = ()

    def get(self, place: int) -> str | None:
        """The layer that took `place`, or None."""
        at = bisect_right(self.parts, place, key=lambda part: part[0]) - 1
        if at >= 0 and place < self.parts[at][1]:
            return self.parts[at][2]
        return None

    @property
    def end(self) -> int:
        """The place behind the last one held; 0 where none is."""
        return self.parts[-1][1] if self.parts else 0

    def __contains__(self, place: object) -> bool:
        return isinstance(place, int) and self.get(place) is not None

    def __len__(self) -> int:
        return sum(stop - start for start, stop, _ in self.parts)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for start, stop, layer in self.parts:
            for place in range(start, stop):
                yield place, layer

    def of(self, layer: str) -> int:
        """How many places `layer` took."""
        return sum(stop - start for start, stop, taker in self.parts if taker == layer)

    def relabelled(self, end: int, layer: str) -> Ranges:
        """The same places, those before `end` taken by `layer`."""
        parts: list[Range] = []
        for start, stop, taker in self.parts:
            if start < end:
                parts.append((start, min(stop, end), layer))
            if stop > end:
                parts.append((max(start, end), stop, taker))
        return Ranges(tuple(_joined(parts)))

    def without(self, places: Set[int]) -> Ranges:
        """These but for `places`."""
        if not any(place in self for place in places):
            return self
        left = ((place, place + 1, layer) for place, layer in self if place not in places)
        return Ranges(tuple(_joined(left)))

    def add(self, taken: Iterable[tuple[int, str]]) -> Ranges:
        """These and `taken`, `(place, layer)` pairs that are not among them yet."""
        fresh = [(place, place + 1, layer) for place, layer in taken]
        if not fresh:
            return self
        return Ranges(tuple(_joined(sorted((*self.parts, *fresh)))))


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
