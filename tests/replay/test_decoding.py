"""JSON as people have it."""

from __future__ import annotations

import pytest

from rolling_chat.replay.decoding import decode


def test_what_json_has_not_becomes_null() -> None:
    assert decode(b'{"a": NaN, "b": -Infinity, "c": 1e999, "d": 1.5, "a": 1}') == {
        "a": 1,
        "b": None,
        "c": None,
        "d": 1.5,
    }
    assert decode(b'\xef\xbb\xbf["x"]') == ["x"]


@pytest.mark.parametrize("text", [b"", b"{", b"nonsense", b'["\xff"]', b"[" * 100_000, b"1" * 10_000])
def test_what_is_no_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(text)
