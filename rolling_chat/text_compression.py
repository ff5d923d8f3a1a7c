"""Compress texts in memory that are seldom read.

A character of a Python string takes one byte, or four in a text that contains an emoji. Compressed, some
thirty texts, or a long one, share a page of compressed UTF-8; reading one returns it unchanged.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from rolling_chat.lazily import HasText

_SHORTEST = 100  # characters; for a shorter text, the entry in a page costs as much as the text
_LONGEST = 4_000_000  # characters; decompressing more would be noticeable
_PAGE = 32  # texts; more hardly compress better, and are decompressed for nothing
_PAGE_CHARACTERS = 65_536  # the same; a longer text has a page of its own
_OPEN = 32  # decompressed pages kept, as a conversation is read in order; none of a long text


class _Page:
    """Several texts, compressed together."""

    __slots__ = ("characters", "compressed", "ends")

    def __init__(self, texts: Sequence[str]) -> None:
        self.characters = array("I", map(len, texts))
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        self.ends = array("I", [0])
        for part in parts:
            self.ends.append(self.ends[-1] + len(part))
        self.compressed = zlib.compress(b"".join(parts), level=1)


class Packed:
    """A text in a compressed page; it is never blank."""

    __slots__ = ("_at", "_page")

    def __init__(self, page: _Page, at: int) -> None:
        self._page = page
        self._at = at

    @property
    def characters(self) -> int:
        """The length of the text, in characters."""
        return self._page.characters[self._at]

    @property
    def bytes(self) -> int:
        """The length of the text in UTF-8, in bytes."""
        ends, at = self._page.ends, self._at
        return ends[at + 1] - ends[at]

    @property
    def text(self) -> str:
        """The original text; takes some microseconds, or one if a neighbor was read recently."""
        page, at = self._page, self._at
        data = _opened(page) if page.ends[-1] <= 4 * _PAGE_CHARACTERS else zlib.decompress(page.compressed)
        return data[page.ends[at] : page.ends[at + 1]].decode("utf-8", "surrogatepass")


class TextSlot:
    """A descriptor that lets a class's slot hold a compressed text in place of a plain one.

    Reading the slot always returns the plain text.
    """

    def __init__(self, slot: Any, holder: type[HasText]) -> None:
        self._slot = slot
        self._holder = holder

    def __get__(self, owner: Any, _: type | None = None) -> Any:
        if owner is None:
            return self
        value = self._slot.__get__(owner)
        return value.text if type(value) is self._holder else value

    def __set__(self, owner: Any, value: Any) -> None:
        self._slot.__set__(owner, value)

    def held(self, owner: Any) -> Any:
        """Return the raw value of the slot: the text, or its compressed form."""
        return self._slot.__get__(owner)


def text_slot(owner: type, name: str, holder: type[HasText]) -> TextSlot:
    """Let a slot of class `owner` hold a `holder` (a compressed text) in place of a plain text."""
    slot = TextSlot(owner.__dict__[name], holder)
    setattr(owner, name, slot)
    return slot


def pack(slot: TextSlot, owners: Iterable[Any]) -> None:
    """Compress the texts in a slot of `owners`, except short and giant ones. Safe while others read."""
    plain = [owner for owner in owners if _is_worth_it(slot.held(owner))]
    for part in _pages(plain, slot):
        page = _Page([slot.held(owner) for owner in part])
        for at, owner in enumerate(part):
            slot.__set__(owner, Packed(page, at))


def _pages(owners: Sequence[Any], slot: TextSlot) -> Iterator[list[Any]]:
    """Divide the owners of texts into pages, by number and by length."""
    part: list[Any] = []
    size = 0
    for owner in owners:
        length = len(slot.held(owner))
        if part and (len(part) == _PAGE or size + length > _PAGE_CHARACTERS):
            yield part
            part, size = [], 0
        part.append(owner)
        size += length
    if part:
        yield part


def _is_worth_it(value: object) -> bool:
    return isinstance(value, str) and _SHORTEST <= len(value) <= _LONGEST and not value.isspace()


@lru_cache(maxsize=_OPEN)
def _opened(page: _Page) -> bytes:
    return zlib.decompress(page.compressed)
