"""JSON from outside is read so strictly that it can be written again, by anybody."""

from __future__ import annotations

import json

import pytest

from rolling_chat.foreign_json import MOST_DEPTH, read_json


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
        "[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1),
        '{"a":' * (MOST_DEPTH + 1) + "1" + "}" * (MOST_DEPTH + 1),
        "[" * 900 + "]" * 900,
    ],
    ids=lambda text: str(text[:12]),
)
def test_what_could_not_be_written_again_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # that it is no other error is all that is promised
        read_json(text)


def test_breadth_is_no_depth() -> None:
    assert len(read_json(json.dumps([[[]]] * 50_000))) == 50_000
