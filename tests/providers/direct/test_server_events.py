"""Server-sent events, in arbitrary chunks of bytes."""

from __future__ import annotations

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.providers.direct.server_events import ServerEvents

_LINES = st.sampled_from(
    [
        "data: one",
        "data:two",
        "data:  three",
        "data",
        "data:",
        ": a comment",
        "event: error",
        "id: 7",
        "",
        "",
        "ÄÖ",
    ]
)
_STREAMS = st.lists(st.tuples(_LINES, st.sampled_from(["\n", "\r\n", "\r"])), max_size=30)


def _by_the_standard(text: str) -> list[str]:
    """Read a stream at once, by the steps of the HTML standard."""
    events: list[str] = []
    data: list[str] = []
    for line in [*re.split("\r\n|\r|\n", text), ""]:
        if not line and data:
            events.append("\n".join(data))
            data = []
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
    return events


def _read(pieces: list[bytes]) -> list[str]:
    events = ServerEvents()
    return [*(data for piece in pieces for data in events.add(piece)), *events.end()]


@given(_STREAMS, st.lists(st.integers(0, 400)))
def test_events_follow_the_standard_however_the_bytes_are_split(
    lines: list[tuple[str, str]], cuts: list[int]
) -> None:
    text = "".join(line + end for line, end in lines)
    whole = text.encode()
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    pieces = [whole[start:end] for start, end in itertools.pairwise(places)]
    assert _read(pieces) == _by_the_standard(text)


def test_invalid_bytes_become_replacement_characters() -> None:
    assert _read([b"data: \xff!\n\n"]) == ["\ufffd!"]
