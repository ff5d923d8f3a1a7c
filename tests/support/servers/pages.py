"""A web server that answers each path with exactly these bytes, or misbehaves as it is told."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

CERTIFICATE = Path(__file__).with_name("localhost.pem")
"""A certificate for `localhost` with its key, which nobody trusts unless told to."""

Writer: TypeAlias = Callable[[asyncio.StreamWriter], Awaitable[None]]
Answer: TypeAlias = bytes | Writer


def page(body: bytes, media_type: str = "text/html", *headers: str) -> bytes:
    """A whole answer."""
    lines = ["HTTP/1.1 200 OK", f"Content-Type: {media_type}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def moved(location: str, status: int = 302) -> bytes:
    """A redirect."""
    return f"HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()


@dataclass
class PageServer:
    """A server on a free port of 127.0.0.1, and the requests that it got."""

    answers: Mapping[str, Answer]
    port: int = 0
    requests: list[str] = field(default_factory=list)
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close the connection."""
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._answer(reader, writer)
        finally:
            writer.transport.abort()
            self._open.remove(task)

    async def end(self) -> None:
        """End what is still being answered."""
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(request)
            answer = self.answers[request.split()[1]]
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
            writer.close()
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def serving(answers: Mapping[str, Answer], *, encrypted: bool = False) -> AsyncIterator[PageServer]:
    """Serve the answers by their paths."""
    pages = PageServer(answers)
    context = None
    if encrypted:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
    server = await asyncio.start_server(pages.handle, "127.0.0.1", 0, ssl=context)
    pages.port = server.sockets[0].getsockname()[1]
    try:
        yield pages
    finally:
        server.close()
        await pages.end()
