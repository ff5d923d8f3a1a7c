"""Entries are made when they are read, once; a lazy text is that of its owner."""

from __future__ import annotations

import pytest

from rolling_chat.lazily import Lazily, LazyText
from rolling_chat.messages import Message


def test_what_is_asked_for_is_made_once_and_nothing_else() -> None:
    made: list[int] = []

    def make(at: int) -> str:
        made.append(at)
        return str(at)

    entries = Lazily(10, make)
    assert (len(entries), entries[3], entries[-1], entries[3]) == (10, "3", "9", "3")
    assert list(entries[2:5]) == ["2", "3", "4"]
    assert made == [3, 9, 2, 4]
    assert list(entries) == [str(at) for at in range(10)]
    with pytest.raises(IndexError):
        entries[10]


def test_a_lazy_text_is_its_owners() -> None:
    message = Message("user", "hello")
    text = LazyText(message)
    assert str(text) == "hello"
    assert text == "hello"
    assert text == LazyText(Message("assistant", "hello"))
    assert text != LazyText(Message("user", "other"))
    assert hash(text) == hash("hello")
