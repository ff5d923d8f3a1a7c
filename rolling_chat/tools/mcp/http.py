"""Connect to an MCP server by streamable HTTP, with limits on the size of its responses."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from rolling_chat.tools.mcp.stdio import MAX_MESSAGE

log = logging.getLogger("rolling_chat.tools.mcp")

_CONNECT_SECONDS = 30.0


@dataclass(slots=True)
class HttpSeen:
    """Facts from a server's responses; `unauthorized`: it requires a login."""

    unauthorized: bool = False


class _LimitedStream(httpx2.AsyncByteStream):
    """The body of a response, with a size limit."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_MESSAGE:
                raise httpx2.ReadError(f"more than {MAX_MESSAGE // 1_000_000} MB were sent")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def http_transport(
    url: str, headers: Mapping[str, str], seconds: float, auth: httpx2.Auth | None, seen: HttpSeen
) -> AsyncIterator[Any]:
    """Open the streams of a connection to `url`; `seconds` is the time for a server to answer."""

    async def examine(response: httpx2.Response) -> None:
        seen.unauthorized = seen.unauthorized or response.status_code == httpx2.codes.UNAUTHORIZED
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            # the size of compressed data is not limited
            raise httpx2.ReadError("the answer is compressed, which was not asked for")
        is_endless = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        if not is_endless and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _LimitedStream(response.stream)

    async with httpx2.AsyncClient(
        headers={"Accept-Encoding": "identity", **headers},
        timeout=httpx2.Timeout(_CONNECT_SECONDS, read=seconds + _CONNECT_SECONDS),
        auth=auth,
        event_hooks={"response": [examine]},
    ) as client:
        transport: AbstractAsyncContextManager[Any] = streamable_http_client(
            url, http_client=client, max_sse_event_size=MAX_MESSAGE
        )
        async with transport as streams:
            yield streams
