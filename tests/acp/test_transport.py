"""Lines that are no messages are answered, and never end a connection."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.acp import pipes
from rolling_chat.acp.transport import BadMessageError, StdioTransport, read_message
from tests.support.patience import PATIENCE_SECONDS


@asynccontextmanager
async def piped() -> AsyncIterator[tuple[StdioTransport, BinaryIO, BinaryIO]]:
    """A transport, and the client's ends of its pipes: one to write to, one to read from."""
    (their_in, our_out), (our_in, their_out) = os.pipe(), os.pipe()
    transport = StdioTransport(os.fdopen(our_in, "rb"), os.fdopen(our_out, "wb"))
    with os.fdopen(their_out, "wb", 0) as writing, os.fdopen(their_in, "rb", 0) as reading:
        yield transport, writing, reading
        writing.close()
        await transport.close()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"hello\n", -32700),
        (b'{"jsonrpc": "2.0", "id": 1\n', -32700),
        (b"[" * 100_000 + b"\n", -32700),
        (b"\xff\xfe\n", -32700),
        (b"[1, 2]\n", -32600),
        (b"5\n", -32600),
        (b"null\n", -32600),
        (b'{"id": {"a": 1}, "method": "initialize"}\n', -32600),
        (b'{"id": [1], "result": 1}\n', -32600),
        (b'{"id": true, "method": "x"}\n', -32600),
        (b'{"id": 1, "method": 5}\n', -32600),
        (b"{}\n", -32600),
        (pipes.TOO_LONG, -32600),
    ],
)
def test_a_line_that_is_no_message_has_an_error(line: bytes, code: int) -> None:
    with pytest.raises(BadMessageError) as error:
        read_message(line)
    assert error.value.code == code


@pytest.mark.parametrize("error", ['"no"', "{}", "null", "5", '{"code": "x"}'])
def test_an_answer_with_a_broken_error_is_an_error_all_the_same(error: str) -> None:
    message = read_message(f'{{"id": 3, "error": {error}}}'.encode())
    assert isinstance(message["error"]["code"], int)
    assert isinstance(message["error"]["message"], str)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["id", "method", "result", "error", "params"]), inner)
    ),
)


@given(_JSON)
def test_whatever_is_taken_for_a_message_can_be_handled_as_one(value: Any) -> None:
    try:
        message = read_message(json.dumps(value).encode())
    except BadMessageError:
        return
    hash(message.get("id"))
    if "method" in message:
        assert isinstance(message["method"], str)
    else:
        assert "result" in message or isinstance(message["error"].get("message"), str)


async def test_garbage_is_answered_and_the_next_message_is_read() -> None:
    async with piped() as (transport, writing, reading):
        writing.write(b'garbage\n\n  \n[1]\n{"jsonrpc": "2.0", "method": "x"}\n')
        assert (await transport.receive() or {})["method"] == "x"
        said = await asyncio.to_thread(lambda: [json.loads(reading.readline()) for _ in range(2)])
        assert [(one["id"], one["error"]["code"]) for one in said] == [(None, -32700), (None, -32600)]


async def test_a_message_that_is_too_long_is_refused_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "MAX_LINE", 64)
    async with piped() as (transport, writing, reading):
        writing.write(b'{"method": "' + b"x" * 500 + b'"}\n{"method": "y"}\n')
        assert (await transport.receive() or {})["method"] == "y"
        assert "at most" in json.loads(await asyncio.to_thread(reading.readline))["error"]["message"]


async def test_half_a_surrogate_pair_is_never_sent() -> None:
    async with piped() as (transport, _writing, reading):
        await transport.send({"text": "a\ud83d b \u2028 é"})
        line = await asyncio.to_thread(reading.readline)
        assert json.loads(line) == {"text": "a? b \u2028 é"}
        assert b"\\ud83d" not in line


async def test_a_client_that_reads_nothing_makes_the_sender_wait_and_its_end_sets_it_free() -> None:
    async with piped() as (transport, writing, reading):
        big = {"text": "x" * 300_000}
        sending = asyncio.create_task(_send_for_ever(transport, big))
        receiving = asyncio.create_task(transport.receive())
        done, _ = await asyncio.wait({sending}, timeout=0.2)
        assert not done
        reading.close()
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(sending, PATIENCE_SECONDS)
        assert await asyncio.wait_for(receiving, PATIENCE_SECONDS) is None
        assert not writing.closed


async def _send_for_ever(transport: StdioTransport, message: dict[str, Any]) -> None:
    while True:
        await transport.send(message)


async def test_the_end_of_stdin_is_the_end() -> None:
    async with piped() as (transport, writing, _reading):
        writing.write(b'{"method": "x"}')
        writing.close()
        assert await transport.receive() == {"method": "x"}
        assert await transport.receive() is None
        assert await transport.receive() is None
