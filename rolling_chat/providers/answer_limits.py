"""Limit what a server may send: the size of a decompressed body, of an event, of an error.

litellm and its HTTP clients read bodies whole, buffer unfinished events, and decompress anything. The limits
are therefore enforced where bytes arrive, in a response hook of every HTTP client that litellm creates. This
module imports httpx: import it together with litellm, never before the first paint.
"""

from __future__ import annotations

import asyncio
import contextvars
import re
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from rolling_chat.providers.http_stack import load_http_stack
from rolling_chat.providers.protocol import ErrorKind, ProviderError
from rolling_chat.providers.whole_answers import as_events, clean_line

load_http_stack()  # this module is imported in a thread, but the first connection is made on the event loop

MAX_STREAM_BYTES = 128_000_000
"""The largest streamed answer: 128,000 tokens, one event each, are about 50 MB."""

MAX_EVENTS = 250_000
"""The most events in a streamed answer: as many as a reply of a million characters can have."""

MAX_IDLE_EVENTS = 5_000
"""The most consecutive events of a stream that add nothing to the reply: pings, comments, empty events."""

MAX_PARTS = 2_000
"""The most lines and JSON objects in one event.

Clients copy an event at every line, and every object of its JSON takes kilobytes."""

MAX_WHOLE_BYTES = 4_000_000
"""The largest text that is parsed at once: one event, or an answer that is not streamed.

Parsed, it may take 30 times as much memory."""

MAX_ERROR_BYTES = 64_000
"""The largest part of an error body that is read."""

_ERROR_SECONDS = 15.0
_STEP_BYTES = 64_000  # bytes decompressed in one step
_SECONDS_WITHOUT_PAUSE = 1.0  # seconds during which an answer is read without pauses
_PAUSE_SECONDS = 0.015  # seconds: less than the time between two paints
# Bytes of complete events after which the event loop gets a turn. For each event, litellm wakes the loop from
# a thread; about 280 wake-ups without a turn fill the pipe that also delivers signals, and one is lost.
_FLUSH_BYTES = 1_000
_END_OF_EVENT = re.compile(rb"[\r\n](?:(?<=\n)|(?!\n))(?:\r\n?|\n)")
_DONE = re.compile(rb"(?:^|[\r\n])data: ?\[DONE\]")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # with it, the first line would not parse as an event field
_SMALL = 16_000  # bytes; in smaller texts, JSON objects are not counted
_STREAM_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_ENCODINGS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


@dataclass(slots=True)
class AnswerProgress:
    """What was received of the answer to one request; `done` means that OpenAI's end mark was read.

    `idle` counts the events since the reply last grew; the code that assembles the reply resets it to 0.
    """

    done: bool = False
    idle: int = 0


_seen: contextvars.ContextVar[AnswerProgress | None] = contextvars.ContextVar("seen", default=None)


def watch_answer() -> AnswerProgress:
    """Start recording the idle events and the end of answers to requests sent by this task from now on."""
    seen = AnswerProgress()
    _seen.set(seen)
    return seen


def limit_answers(make_client: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a factory of HTTP clients so that answers beyond a size limit are cut off."""

    def make_limited(*args: Any, **kwargs: Any) -> Any:
        client = make_client(*args, **kwargs)
        if isinstance(client, httpx.AsyncClient):
            client.headers["accept-encoding"] = "gzip, deflate"  # brotli could not be limited here
            hooks = client.event_hooks
            client.event_hooks = {**hooks, "response": [*hooks["response"], _limit]}
        return client

    return make_limited


async def _limit(response: httpx.Response) -> None:
    if not isinstance(response.stream, httpx.AsyncByteStream):
        return
    encoding = response.headers.get("content-encoding", "identity").strip().lower() or "identity"
    if encoding != "identity" and encoding not in _ENCODINGS:
        await response.aclose()
        raise _refusal(response, f"an answer in an encoding that was not asked for ({encoding[:20]!r})")
    response.headers.pop("content-encoding", None)
    if encoding != "identity":
        response.headers.pop("content-length", None)
    response.stream = _Limited(response, response.stream, encoding, _seen.get())


class _Limited(httpx.AsyncByteStream):
    """The decompressed body of a response, limited in size."""

    def __init__(
        self,
        response: httpx.Response,
        stream: httpx.AsyncByteStream,
        encoding: str,
        seen: AnswerProgress | None,
    ) -> None:
        self._response = response
        self._stream = stream
        self._encoding = encoding
        self._seen = seen

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = _decompressed(_with_pauses(self._stream), self._encoding)
        pieces = self._error(body) if self._response.status_code >= 300 else self._answer(body)
        async for piece in pieces:
            yield piece
            # clients skip empty events without awaiting, so a signal or Esc would never be handled
            await asyncio.sleep(0)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def _error(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the beginning of an error body, as far as it arrives in time."""
        left, deadline = MAX_ERROR_BYTES, asyncio.get_running_loop().time() + _ERROR_SECONDS
        while left > 0:
            try:
                async with asyncio.timeout_at(deadline):
                    piece = await anext(body)
            except (StopAsyncIteration, TimeoutError):
                return
            except httpx.RequestError:  # broken or badly compressed: the status says more than the body
                return
            yield piece[:left]
            left -= len(piece)

    async def _answer(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        kind = self._response.headers.get("content-type", "").lower()
        if "amazon.eventstream" in kind and "event-stream" not in self._accept_header():
            async for piece in self._frames(body):
                yield piece
            return
        head = (await self._read_head(body)).removeprefix(_BYTE_ORDER_MARK)
        start = head.lstrip(b" \t\r\n")
        body = _joined(head, body)
        if start.startswith(_STREAM_FIELDS):
            pieces = self._events(body)
        elif "ndjson" in kind or "jsonl" in kind or "stream+json" in kind:
            pieces = self._json_lines(body)
        else:
            pieces = self._whole(body)
        async for piece in pieces:
            yield piece

    async def _read_head(self, body: AsyncIterator[bytes]) -> bytes:
        """Read until the format of the answer is recognizable; leading white space is dropped."""
        head, size = b"", 0
        async for piece in body:
            size += len(piece)
            head = head + piece if head else piece.lstrip()
            if len(head) >= len(b"event:"):
                break
            if size > MAX_WHOLE_BYTES:
                raise self._too_large_error()
        return head

    async def _frames(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the bytes of a binary stream; its reader knows the length of each frame."""
        total = 0
        async for piece in body:
            total += len(piece)
            if total > MAX_STREAM_BYTES:
                raise self._too_large_error()
            yield piece

    async def _events(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield server-sent events, without usage that cannot be parsed."""
        size, parts, events = 0, 0, 0  # the first two belong to the unfinished event
        async for lines in self._lines(body):
            start, begin = 0, 0
            for end in _event_ends(lines):
                events += 1
                self._count_idle()
                if events > MAX_EVENTS or parts + _count_parts(lines[begin:end]) > MAX_PARTS:
                    raise self._too_large_error()
                size, parts, begin = 0, 0, end
                if end - start >= _FLUSH_BYTES:
                    yield self._note_done(lines[start:end])
                    start = end
            size += len(lines) - begin
            parts += _count_parts(lines[begin:])
            if size > MAX_WHOLE_BYTES or parts > MAX_PARTS:
                raise self._too_large_error()
            if start < len(lines):
                yield self._note_done(lines[start:])

    def _count_idle(self) -> None:
        if self._seen is None:
            return
        self._seen.idle += 1
        if self._seen.idle > MAX_IDLE_EVENTS:
            raise self._too_large_error()

    def _note_done(self, lines: bytes) -> bytes:
        if self._seen is not None and b"[DONE]" in lines and _DONE.search(lines):
            self._seen.done = True
        return lines

    def _too_large_error(self) -> ProviderError:
        return _refusal(self._response, "more than an answer can have")

    async def _json_lines(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield lines, each of which is one event."""
        async for lines in self._lines(body):
            for line in lines.splitlines(keepends=True):
                self._count_idle()
                if _count_parts(line) > MAX_PARTS:
                    raise self._too_large_error()
                yield line

    async def _lines(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield complete lines as they arrive, JSON texts or event fields, with usage made parseable."""
        rest, total = bytearray(), 0
        async for piece in body:
            total += len(piece)
            searched = max(0, len(rest) - 1)
            rest += piece
            end = max(rest.rfind(b"\n", searched), rest.rfind(b"\r", searched, -1)) + 1
            if len(rest) - end > MAX_WHOLE_BYTES or total > MAX_STREAM_BYTES:
                raise self._too_large_error()
            if end:
                lines = bytes(rest[:end])
                del rest[:end]
                yield _clean(lines)
        if rest:
            yield _clean(bytes(rest))

    async def _whole(self, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield an answer that was not streamed; if a stream was requested, convert it to stream events."""
        whole = bytearray()
        async for piece in body:
            whole += piece
            if len(whole) > MAX_WHOLE_BYTES:
                raise self._too_large_error()
        content = bytes(whole)
        if _count_objects(content) > MAX_PARTS:
            raise self._too_large_error()
        yield as_events(content) if self._wants_stream() else content

    def _accept_header(self) -> str:
        return str(self._response.request.headers.get("accept", "")).lower()

    def _wants_stream(self) -> bool:
        request = self._response.request
        if "streamGenerateContent" in request.url.path:
            return True
        try:
            return re.search(rb'"stream"\s*:\s*true', request.content) is not None
        except httpx.RequestNotRead:
            return False


def _clean(lines: bytes) -> bytes:
    if b"sage" not in lines and b"_count" not in lines:  # neither usage nor usageMetadata, nor Ollama's
        return lines
    return b"".join(clean_line(line) for line in lines.splitlines(keepends=True))


def _event_ends(lines: bytes) -> Iterator[int]:
    """Return the positions after the empty lines in a block of complete lines."""
    return (found.end() - 1 for found in _END_OF_EVENT.finditer(b"\n" + lines))


def _count_parts(lines: bytes) -> int:
    """Count lines and, in long texts, JSON objects."""
    breaks = max(lines.count(b"\n"), lines.count(b"\r"))
    return breaks if len(lines) < _SMALL else breaks + _count_objects(lines)


def _count_objects(text: bytes) -> int:
    """Count JSON objects; braces within strings are excluded only where that matters."""
    count = text.count(b"{")
    return count if count <= MAX_PARTS else _STRING.sub(b"", text).count(b"{")


async def _with_pauses(stream: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks of a body, with a short pause after each one that had to be waited for.

    Servers send word by word, and waiting for each chunk costs more than reading it. Data that arrives during
    a pause is buffered by the system and read at once. An answer that ends soon is read without pauses.
    """
    loop, pieces = asyncio.get_running_loop(), aiter(stream)
    began = loop.time()
    while True:
        has_waited: list[bool] = []
        turn = loop.call_soon(has_waited.append, True)  # runs only if the read has to wait
        try:
            piece = await anext(pieces)
        except StopAsyncIteration:
            return
        finally:
            turn.cancel()
        yield piece
        if has_waited and loop.time() - began > _SECONDS_WITHOUT_PAUSE:
            await asyncio.sleep(_PAUSE_SECONDS)


async def _joined(head: bytes, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if head:
        yield head
    async for piece in body:
        yield piece


async def _decompressed(stream: AsyncIterable[bytes], encoding: str) -> AsyncIterator[bytes]:
    """Yield the body in chunks of limited size, however much a few compressed bytes expand to."""
    if encoding == "identity":
        async for piece in stream:
            yield piece
        return
    decoder = zlib.decompressobj(_ENCODINGS[encoding])
    began = False
    async for piece in stream:
        if not began and encoding == "deflate" and piece and piece[0] & 0x0F != 8:
            decoder = zlib.decompressobj(-zlib.MAX_WBITS)  # some servers send deflate without its header
        began = began or bool(piece)
        try:
            out = decoder.decompress(piece, _STEP_BYTES)
            while out:
                yield out
                await asyncio.sleep(0)  # a small chunk may expand to gigabytes: give the screen a turn
                out = decoder.decompress(decoder.unconsumed_tail, _STEP_BYTES)
        except zlib.error as error:
            raise httpx.DecodingError(str(error)) from error


def _refusal(response: httpx.Response, what: str) -> ProviderError:
    host = response.url.netloc.decode("ascii", "replace").rpartition("@")[2]
    return ProviderError(ErrorKind.UNKNOWN, f"{host} sent {what}: the connection was closed.")
