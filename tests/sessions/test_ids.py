"""Ids: UUIDv7, above all that were made before, whatever the clock does."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.sessions.ids import id_of_time, is_id, new_id, packed, short_of, unpacked

ONE = "01890000-0000-7000-8000-00000000abcd"


def test_each_is_above_the_one_before() -> None:
    ids = [new_id() for _ in range(5_000)]
    assert ids == sorted(set(ids))


def test_each_is_above_the_one_before_where_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_id()
    monkeypatch.setattr("rolling_chat.sessions.ids.time.time_ns", lambda: 1)
    assert new_id() > before


def test_threads_make_none_twice() -> None:
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: new_id(), range(4_000)))
    assert len(set(ids)) == len(ids)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 2**63 - 1))
def test_any_time_makes_an_id(seconds: float, count: int) -> None:
    made = id_of_time(seconds, count)
    assert uuid.UUID(made).version == 7
    assert uuid.UUID(made).variant == uuid.RFC_4122
    assert is_id(made)


def test_ids_of_times_are_in_their_order_and_then_in_that_of_the_count() -> None:
    ids = [id_of_time(at, count) for at in (0.0, 1.5, 1.6, 1.7e9) for count in (0, 1, 2**33)]
    assert ids == sorted(ids)
    assert uuid.UUID(ids[-1]).int >> 80 == 1_700_000_000_000


def test_an_id_is_sixteen_bytes_and_back() -> None:
    made = new_id()
    assert unpacked(packed(made)) == made == str(uuid.UUID(bytes=packed(made)))
    assert short_of(made) == made[-8:]


@pytest.mark.parametrize(
    "text", ["", "m17", "0" * 36, f"{ONE}0", f"{ONE}\n", ONE.upper(), ONE.replace("-", "")]
)
def test_other_texts_are_no_ids(text: str) -> None:
    assert not is_id(text)
