"""Snapshots of a list that grows: what each shows stays, and nothing is copied for it."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.snapshots import Snapshot

INDEXES = st.none() | st.integers(-12, 12)


@given(st.lists(st.integers(), max_size=10), st.lists(st.integers()), INDEXES, INDEXES, st.data())
def test_one_stays_what_the_list_was(
    entries: list[int], more: list[int], start: int | None, stop: int | None, data: st.DataObject
) -> None:
    was, snapshot = list(entries), Snapshot(entries)
    entries += more
    step = data.draw(st.sampled_from([None, 1, 2, -1, -3]))
    assert list(snapshot) == was
    assert list(reversed(snapshot)) == was[::-1]
    assert len(snapshot) == len(was)
    assert list(snapshot[start:stop:step]) == was[start:stop:step]
    for at in range(-12, 12):
        if -len(was) <= at < len(was):
            assert snapshot[at] == was[at]
        else:
            with pytest.raises(IndexError):
                snapshot[at]


def test_nothing_is_copied() -> None:
    entries = list(range(100_000))
    tracemalloc.start()
    try:
        kept = [Snapshot(entries) for _ in range(10)]
        assert sum(map(len, kept)) == 1_000_000
        assert tracemalloc.get_traced_memory()[1] < len(entries)  # bytes: less than one for each
    finally:
        tracemalloc.stop()
