"""The limits on what a server may send, enforced at the transport."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import chain, repeat

import httpx
import pytest

from rolling_chat.providers import answer_limits
from rolling_chat.providers.answer_limits import (
    MAX_ERROR_BYTES,
    MAX_EVENTS,
    MAX_IDLE_EVENTS,
    MAX_PARTS,
    MAX_STREAM_BYTES,
    MAX_WHOLE_BYTES,
    AnswerProgress,
    limit_answers,
    watch_answer,
)
from rolling_chat.providers.protocol import ProviderError

GZIP = zlib.MAX_WBITS | 16
TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"a word"}}]}\n\n'


class _Sender(httpx.AsyncBaseTransport):
    """Answers with `pieces`, and counts how many bytes of them were taken."""

    def __init__(self, pieces: Iterable[bytes], status: int, headers: dict[str, str]) -> None:
        self._pieces, self._status, self._headers = pieces, status, headers
        self.taken = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        class Body(httpx.AsyncByteStream):
            async def __aiter__(stream) -> AsyncIterator[bytes]:  # noqa: N805
                for piece in self._pieces:
                    self.taken += len(piece)
                    yield piece

        return httpx.Response(self._status, headers=self._headers, stream=Body(), request=request)


async def _receive(sender: _Sender, seen: AnswerProgress | None = None) -> int:
    """How many bytes reach the client; with `seen` each piece of them adds to the reply."""
    client = limit_answers(httpx.AsyncClient)(transport=sender)
    received = 0
    async with client, client.stream("POST", "http://any/v1", json={"stream": True}) as response:
        async for piece in response.aiter_raw():
            received += len(piece)
            if seen is not None:
                seen.idle = 0
    return received


def _compressed(content: bytes, kind: int = GZIP) -> Iterator[bytes]:
    compressor = zlib.compressobj(wbits=kind)
    while True:
        yield compressor.compress(content) + compressor.flush(zlib.Z_FULL_FLUSH)


def _event(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


ENDLESS = {
    "bytes of events": repeat(b"data: " + b"x" * 60_000 + b"\n\n"),
    "events": repeat(b"data: x\n\n" * 5_000),
    "lines of an event": repeat(b"data: x\n" * 5_000),
    "a line": chain([b"data: "], repeat(b"x" * 60_000)),
    "a binary frame": repeat(b"\0" * 60_000),
    "a JSON text": repeat(b"[" * 60_000),
    "objects of an event": iter([_event({"choices": [{}] * (MAX_PARTS * 10)})]),
    "objects of a JSON text": iter([json.dumps({"choices": [{}] * (MAX_PARTS * 10)}).encode()]),
}


@pytest.mark.parametrize(
    ("name", "most"),
    [
        pytest.param("bytes of events", MAX_STREAM_BYTES, marks=pytest.mark.slow),
        ("events", MAX_EVENTS * len(b"data: x\n\n")),
        ("lines of an event", MAX_PARTS * len(b"data: x\n")),
        ("a line", MAX_WHOLE_BYTES),
        ("a binary frame", MAX_STREAM_BYTES),
        ("a JSON text", MAX_WHOLE_BYTES),
        ("objects of an event", MAX_WHOLE_BYTES),
        ("objects of a JSON text", MAX_WHOLE_BYTES),
    ],
)
async def test_an_answer_without_an_end_is_refused(name: str, most: int) -> None:
    kind = "application/vnd.amazon.eventstream" if name == "a binary frame" else ""
    sender = _Sender(ENDLESS[name], 200, {"content-type": kind})
    with pytest.raises(ProviderError, match="any sent more than an answer can have"):
        await _receive(sender, watch_answer())
    assert sender.taken <= most + 100_000


@pytest.mark.parametrize("event", [b": ping\n\n", b"data: {}\n\n", b"\n\n"])
async def test_events_that_add_nothing_are_refused_soon(event: bytes) -> None:
    watch_answer()
    sender = _Sender(chain([TEXT], repeat(event)), 200, {})
    with pytest.raises(ProviderError, match="more than an answer can have"):
        await _receive(sender)
    assert sender.taken <= len(TEXT) + (MAX_IDLE_EVENTS + 2) * len(event)


@pytest.mark.parametrize(
    "content",
    [
        b"data: x\n" * 100_000,
        b"[" * 1_000_000,
        b"data: " + b"x" * 1_000_000,
        b" " * 1_000_000,
        b"\n" * 1_000_000,
    ],
)
async def test_a_decompression_bomb_is_never_in_memory_as_a_whole(content: bytes) -> None:
    sender = _Sender(_compressed(content), 200, {"content-encoding": "gzip"})
    with pytest.raises(ProviderError, match="more than an answer can have"):
        await _receive(sender, watch_answer())
    assert sender.taken < 100_000


@pytest.mark.parametrize("encoding", ["", "gzip", "deflate"])
async def test_only_the_beginning_of_an_error_is_read(encoding: str) -> None:
    said = b"no, no, no. " * 1_000
    kind = GZIP if encoding == "gzip" else zlib.MAX_WBITS
    pieces = _compressed(said, kind) if encoding else repeat(said)
    sender = _Sender(pieces, 400, {"content-encoding": encoding} if encoding else {})
    assert await _receive(sender) == MAX_ERROR_BYTES
    assert sender.taken < MAX_ERROR_BYTES + len(said)


async def test_an_unrequested_encoding_is_refused() -> None:
    with pytest.raises(ProviderError, match="encoding that was not asked for"):
        await _receive(_Sender([b"x"], 200, {"content-encoding": "br"}))


MEGABYTE = "def f(x):\n\treturn {'a': [1, {\"b\": x}]}\n" * 25_000
CODE = {"choices": [{"index": 0, "delta": {"content": MEGABYTE}}]}


@pytest.mark.parametrize(
    "pieces",
    [
        [TEXT] * 10_000,
        [TEXT.strip() + b"\n", b"\n"] * (MAX_PARTS + 10),
        [TEXT.strip() + b"\r\n", b"\r\n"] * (MAX_PARTS + 10),
        [_event(CODE)],
        [json.dumps({"id": "no events", "text": MEGABYTE}).encode()],
        [b": ping\n\n"] * 1_000,
    ],
    ids=["words", "line by line", "line by line, CR LF", "one event", "one JSON text", "pings"],
)
async def test_a_real_answer_of_a_megabyte_passes_as_it_is(pieces: list[bytes]) -> None:
    sender = _Sender(pieces, 200, {})
    assert await _receive(sender, watch_answer()) == sum(map(len, pieces))


@pytest.mark.parametrize(("after", "rests"), [(-1.0, 4), (3_600.0, 0)], ids=["long", "short"])
async def test_a_long_answer_is_read_in_batches_between_pauses(
    monkeypatch: pytest.MonkeyPatch, after: float, rests: int
) -> None:
    rested: list[float] = []
    sleep = asyncio.sleep

    async def rest(seconds: float) -> None:
        rested.append(seconds)
        await sleep(0)

    async def sent() -> AsyncIterator[bytes]:
        for word in range(40):
            if word % 10 == 0:  # the others have come with it
                await sleep(0)
            yield b"word "

    monkeypatch.setattr(answer_limits, "_SECONDS_WITHOUT_PAUSE", after)
    monkeypatch.setattr("rolling_chat.providers.answer_limits.asyncio.sleep", rest)
    pieces = [piece async for piece in answer_limits._with_pauses(sent())]
    assert pieces == [b"word "] * 40
    assert rested == [answer_limits._PAUSE_SECONDS] * rests
