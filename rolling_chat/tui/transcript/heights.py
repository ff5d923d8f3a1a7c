"""Heights in rows: map a row to its item and back in O(log n), in a list that grows at both ends."""

from __future__ import annotations


class Fenwick:
    """A list of heights with running sums (Fenwick, 1994): append, pop, change and find take O(log n)."""

    __slots__ = ("_tree", "_values")

    def __init__(self) -> None:
        self._values: list[int] = []
        self._tree: list[int] = [0]

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, at: int) -> int:
        return self._values[at]

    def append(self, value: int) -> None:
        """Append a height."""
        self._values.append(value)
        at = len(self._values)
        step, below = 1, at - 1
        while step < at & -at:
            value += self._tree[below]
            below -= step
            step <<= 1
        self._tree.append(value)

    def pop(self) -> None:
        """Remove the last height."""
        self._values.pop()
        self._tree.pop()

    def set(self, at: int, value: int) -> None:
        """Change the height at an index."""
        change = value - self._values[at]
        if not change:
            return
        self._values[at] = value
        place = at + 1
        while place < len(self._tree):
            self._tree[place] += change
            place += place & -place

    def before(self, at: int) -> int:
        """Return the sum of the heights before an index."""
        rows = 0
        while at > 0:
            rows += self._tree[at]
            at -= at & -at
        return rows

    @property
    def total(self) -> int:
        """The sum of all heights."""
        return self.before(len(self._values))

    def find(self, row: int) -> tuple[int, int]:
        """Return the index of the height that contains a row, and the row's offset in it; at the end, 0."""
        place, left = 0, row
        step = 1 << len(self._values).bit_length()
        while step:
            below = place + step
            if below < len(self._tree) and self._tree[below] <= left:
                place, left = below, left - self._tree[below]
            step >>= 1
        return (place, left) if place < len(self._values) else (len(self._values), 0)


class Heights:
    """The heights of items by index; items added on top get -1, -2, …, so that no index ever changes."""

    __slots__ = ("above", "below")

    def __init__(self) -> None:
        self.above = Fenwick()  # grows upwards from ordinal -1
        self.below = Fenwick()  # grows downwards from ordinal 0

    @property
    def start(self) -> int:
        """The index of the first item."""
        return -len(self.above)

    @property
    def end(self) -> int:
        """The index after that of the last item."""
        return len(self.below)

    def cut(self, ordinal: int) -> None:
        """Remove the heights from `ordinal` to the end; `ordinal` must not be negative (added on top)."""
        while len(self.below) > ordinal:
            self.below.pop()

    @property
    def ordinals(self) -> range:
        """The range of the items' indices."""
        return range(-len(self.above), len(self.below))

    def set(self, ordinal: int, height: int) -> None:
        """Change the height of an item."""
        if ordinal < 0:
            self.above.set(-1 - ordinal, height)
        else:
            self.below.set(ordinal, height)

    def __getitem__(self, ordinal: int) -> int:
        return self.above[-1 - ordinal] if ordinal < 0 else self.below[ordinal]

    @property
    def total(self) -> int:
        """The number of rows."""
        return self.above.total + self.below.total

    def before(self, ordinal: int) -> int:
        """Return the number of rows above an item."""
        if ordinal < 0:
            return self.above.total - self.above.before(-ordinal)
        return self.above.total + self.below.before(ordinal)

    def find(self, row: int) -> tuple[int, int]:
        """Return the index of the item that contains a row, and the row's offset in it; at the end, 0."""
        above = self.above.total
        if row >= above:
            return self.below.find(row - above)
        at, left = self.above.find(above - 1 - max(0, row))
        return -1 - at, self.above[at] - 1 - left
