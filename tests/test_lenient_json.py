"""JSON from outside is read so strictly that it can be written again, by anybody."""

from __future__ import annotations

import json

import pytest

from rolling_chat.lenient_json import MAX_DEPTH, read_json, read_json_with_nulls


@pytest.mark.parametrize(
    "text", ['{"a": [1, 2.5, null, true, "x"]}', "[]", '"x"', "3", "[" * 100 + "]" * 100]
)
def test_json_is_read(text: str) -> None:
    assert read_json(text) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        b"\xff\xfe",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        "9" * 5_000,
        "[" * 5_000,
        '{"a":' * 100_000,
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1),
        "[" * 900 + "]" * 900,
    ],
    ids=lambda text: str(text[:12]),
)
def test_what_could_not_be_written_again_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # that it is no other error is all that is promised
        read_json(text)


def test_breadth_is_no_depth() -> None:
    assert len(read_json(json.dumps([[[]]] * 50_000))) == 50_000


def test_what_json_has_not_becomes_null() -> None:
    assert read_json_with_nulls(b'{"a": NaN, "b": -Infinity, "c": 1e999, "d": 1.5, "a": 1}') == {
        "a": 1,
        "b": None,
        "c": None,
        "d": 1.5,
    }
    assert read_json_with_nulls(b'\xef\xbb\xbf["x"]') == ["x"]


@pytest.mark.parametrize("text", [b"", b"{", b"nonsense", b'["\xff"]', b"[" * 100_000, b"1" * 10_000])
def test_what_is_no_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json_with_nulls(text)
