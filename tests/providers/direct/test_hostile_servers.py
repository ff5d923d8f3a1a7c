"""Answers that no server should send, byte by byte, read both ways."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from rolling_chat.messages import Message
from rolling_chat.providers.direct.choice import direct_request
from rolling_chat.providers.direct.direct_route import DirectRoute
from rolling_chat.providers.direct.openai_request import openai_headers
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import Delta, ErrorKind, Finished, ProviderError, Request, TextDelta
from rolling_chat.providers.retries import RetryPolicy
from rolling_chat.settings.catalog import ModelCatalog
from tests.providers.conftest import MakeProvider

_KEYS = {"OPENAI_API_KEY": "sk-0123456789"}
_ONCE = RetryPolicy(minutes=0)
_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
_CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_DONE = b"data: [DONE]\n\n"


def _event(delta: object = None, reason: object = None) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": reason}
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


_HELLO, _STOP = _event({"content": "hello"}), _event(reason="stop")
_WHOLE = _HELLO + _STOP + _DONE


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@dataclass
class _Server:
    """Writes the same bytes to each request; `keeps`: and then waits for the next one on its connection."""

    answer: bytes
    keeps: bool = False
    port: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    serving: list[asyncio.Task[None] | None] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        self.serving.append(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = re.search(rb"content-length: (\d+)", head.lower())
                await reader.readexactly(int(size[1]) if size else 0)
                writer.write(self.answer)
                await writer.drain()
                if not self.keeps:
                    break
        writer.close()

    @property
    def request(self) -> Request:
        return Request("openai/m", (Message("user", "hi"),), api_base=f"http://127.0.0.1:{self.port}/v1")


@contextlib.asynccontextmanager
async def _serving(answer: bytes, *, keeps: bool = False) -> AsyncIterator[_Server]:
    server = _Server(answer, keeps)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for writer in server.writers:
            writer.close()
        await asyncio.gather(*filter(None, server.serving))


async def _read(provider: ModelProvider, request: Request, seen: list[Delta]) -> None:
    async for delta in provider.stream(request):
        seen.append(delta)  # noqa: PERF401  # what came before an error is wanted


async def _message(provider: ModelProvider, answer: bytes) -> Message:
    seen: list[Delta] = []
    async with _serving(answer) as server:
        await _read(provider, server.request, seen)
    assert isinstance(seen[-1], Finished)
    return seen[-1].message


async def _error(provider: ModelProvider, answer: bytes) -> tuple[ProviderError, str]:
    seen: list[Delta] = []
    async with _serving(answer) as server:
        with pytest.raises(ProviderError) as caught:
            await _read(provider, server.request, seen)
    return caught.value, "".join(delta.text for delta in seen if isinstance(delta, TextDelta))


@pytest.fixture
def either(make_provider: MakeProvider) -> ModelProvider:
    return make_provider(_KEYS, retries=_ONCE)


@pytest_asyncio.fixture
async def directly(catalog: ModelCatalog) -> AsyncIterator[ModelProvider]:
    provider = ModelProvider(environ=_KEYS, catalog=catalog, retries=_ONCE, direct="auto")
    yield provider
    await provider.close()


async def test_a_byte_order_mark_does_not_break_the_first_event(either: ModelProvider) -> None:
    assert (await _message(either, _STREAM + b"\xef\xbb\xbf" + _WHOLE)).text == "hello"


async def test_a_connection_that_breaks_after_the_end_loses_nothing(either: ModelProvider) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n"
    assert (await _message(either, head + _HELLO + _STOP)).text == "hello"


async def test_a_piece_of_an_unknown_call_begins_a_call_of_its_own(either: ModelProvider) -> None:
    call = {"index": -1, "id": "a", "function": {"name": "read", "arguments": "{}"}}
    piece = {"index": 5, "function": {"arguments": "}"}}
    events = _event({"tool_calls": [call]}) + _event({"tool_calls": [piece]}) + _STOP + _DONE
    message = await _message(either, _STREAM + events)
    assert [(made.name, made.arguments) for made in message.tool_calls] == [("read", "{}")]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"HTTP/1.1 401 No\r\ncontent-length: 999\r\n\r\n{", ErrorKind.BAD_KEY),
        (b"HTTP/1.1 500 No\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nnone", ErrorKind.OVERLOADED),
        (b"HTTP/1.1 302 No\r\nlocation: http://[x/\r\ncontent-length: 0\r\n\r\n", ErrorKind.BAD_REQUEST),
    ],
)
async def test_a_status_counts_even_if_the_rest_is_broken(
    either: ModelProvider, answer: bytes, kind: ErrorKind
) -> None:
    error, _text = await _error(either, answer)
    assert error.kind is kind


@pytest.mark.parametrize("bad", [b"data: {oops\n\n", b"data: " + b"[" * 100_000 + b"\n\n"])
async def test_a_reply_with_a_gap_is_not_complete(directly: ModelProvider, bad: bytes) -> None:
    error, text = await _error(directly, _STREAM + _HELLO + bad + _WHOLE)
    assert (error.kind, text) == (ErrorKind.INTERRUPTED, "hello")


async def test_empty_events_are_skipped(directly: ModelProvider) -> None:
    events = b'data:\n\ndata:  \n\ndata: 5\n\ndata: "x"\n\ndata: null\n\ndata: []\n\ndata: {}\n\n'
    odd = _event({"content": " you"}, reason={"not": "text"})
    assert (await _message(directly, _STREAM + _HELLO + events + odd + _STOP + _DONE)).text == "hello you"


@pytest.mark.parametrize(
    "code", ["²", "9" * 5_000, [], -1, True], ids=["no digit", "long", "a list", "negative", "a truth"]
)
async def test_an_error_with_an_unusual_code_is_quoted(directly: ModelProvider, code: object) -> None:
    event = f"data: {json.dumps({'error': {'message': 'out of ink', 'code': code}})}\n\n"
    error, _text = await _error(directly, _STREAM + event.encode())
    assert "out of ink" in str(error)


async def test_no_content_type_exempts_a_stream_from_its_limits(directly: ModelProvider) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\nconnection: close\r\n\r\n"
    error, text = await _error(directly, head + _HELLO + b"data: {}\n\n" * 6_000 + _STOP + _DONE)
    assert "more than an answer can have" in str(error)
    assert text == "hello"


@pytest.mark.parametrize("end", [b"0\r\n\r\n", b""], ids=["ends", "hangs"])
async def test_a_connection_serves_the_next_request_where_the_answer_ends(
    directly: ModelProvider, end: bytes
) -> None:
    async with _serving(_CHUNKED + _chunk(_WHOLE) + end, keeps=True) as server:
        for _turn in range(2):
            seen: list[Delta] = []
            await _read(directly, server.request, seen)
            assert isinstance(seen[-1], Finished)
        assert len(server.writers) == (1 if end else 2)


def test_connections_belong_to_one_event_loop() -> None:
    route = DirectRoute(timeout=9)

    async def client() -> object:
        await route.load()
        return route._client

    assert asyncio.run(client()) is not asyncio.run(client())


async def test_missing_certificates_do_not_prevent_a_request(
    directly: ModelProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/there/is/none.pem")
    assert (await _message(directly, _STREAM + _WHOLE)).text == "hello"


async def test_a_proxy_that_needs_a_package_is_reported(
    directly: ModelProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    error, _text = await _error(directly, _STREAM + _WHOLE)
    assert "SOCKS" in str(error)


@pytest.mark.parametrize(("model", "is_told"), [("openai/m", True), ("groq/m", False), ("zai/m", False)])
def test_only_openai_is_told_the_organization(model: str, is_told: bool) -> None:
    environ = {"OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj-1"}
    headers = openai_headers({"model": model, "api_key": "sk-0123456789"}, environ)
    assert headers is not None
    assert ({"org-1", "proj-1"} <= set(headers.values())) is is_told
    assert ({"org-1", "proj-1"} & set(headers.values()) != set()) is is_told


@pytest.mark.parametrize("rest", ["?v=1", "#top"])
def test_an_address_with_a_query_is_left_to_litellm(rest: str) -> None:
    arguments = {"model": "openai/m", "messages": [{"role": "user", "content": "hi"}], "api_key": "sk-0123"}
    assert direct_request({**arguments, "api_base": "http://h/v1"}, {}) is not None
    assert direct_request({**arguments, "api_base": f"http://h/v1{rest}"}, {}) is None
