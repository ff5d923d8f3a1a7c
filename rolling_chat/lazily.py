"""Values created on first use: sequence entries, texts read from their owner, a package's public names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, TypeVar, overload

Entry = TypeVar("Entry")


class Lazily(Sequence[Entry]):
    """A sequence of `count` entries, each created from its index on first read, and kept."""

    __slots__ = ("_count", "_made", "_make")

    def __init__(self, count: int, make: Callable[[int], Entry]) -> None:
        self._count = count
        self._make = make
        self._made: dict[int, Entry] = {}

    @overload
    def __getitem__(self, at: int) -> Entry: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Entry]: ...

    def __getitem__(self, at: int | slice) -> Entry | Sequence[Entry]:
        places = range(self._count)[at]
        return self._entry(places) if isinstance(places, int) else tuple(map(self._entry, places))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Entry]:
        return map(self._entry, range(self._count))

    def _entry(self, place: int) -> Entry:
        entry = self._made.get(place)
        if entry is None:
            entry = self._made[place] = self._make(place)
        return entry


class HasText(Protocol):
    """An object with a text that a `LazyText` reads."""

    @property
    def text(self) -> str:
        """The text."""
        ...


class LazyText:
    """A text that is read from its owner whenever it is needed, so that memory holds only one copy."""

    __slots__ = ("_owner",)

    def __init__(self, owner: HasText) -> None:
        self._owner = owner

    def __str__(self) -> str:
        return self._owner.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazyText | str) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def public_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for `package` that imports a public name on first use.

    `modules` maps names to their modules, relative to the package if they begin with a dot.
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
