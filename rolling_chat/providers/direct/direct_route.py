"""Send a request directly by HTTP and read its answer event by event.

httpx is imported on first use, in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rolling_chat import __version__
from rolling_chat.providers.addresses import keep_loopback_direct
from rolling_chat.providers.background_thread import in_background
from rolling_chat.providers.direct.errors import AnswerError
from rolling_chat.providers.direct.server_events import ServerEvents
from rolling_chat.providers.fragments import Fragment
from rolling_chat.providers.protocol import ErrorKind, ProviderError

if TYPE_CHECKING:
    import ssl

    import httpx

    from rolling_chat.providers.direct.choice import DirectRequest, EventReader

_log = logging.getLogger("rolling_chat.providers.direct")

_DONE = "[DONE]"
_END_SECONDS = 0.1  # to wait for the end of an answer after its last event; servers send both at once
_HEADERS = {
    "accept": "text/event-stream, application/json",
    "content-type": "application/json",
    "user-agent": f"rolling-chat/{__version__}",
}
_NO_SOCKS = (
    "The environment names a SOCKS proxy (ALL_PROXY, HTTPS_PROXY), for which a package is missing: "
    "install httpx[socks], or unset the variable."
)


class DirectRoute:
    """Sends requests with httpx and keeps connections open for later ones; `timeout` is in seconds."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # the loop that owns the client's connections

    async def load(self) -> None:
        """Import what sending requires, and load the certificates, in a thread."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._client, self._loop = None, loop
        if self._client is None:
            client = await in_background(self._make_client)
            self._client = self._client or client

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def fragments(self, request: DirectRequest) -> AsyncGenerator[Fragment, None]:
        """Send a request and yield its reply. Raises AnswerError, ProviderError, and httpx's errors."""
        await self.load()
        assert self._client is not None
        body = json.dumps(request.body, ensure_ascii=False, separators=(",", ":")).encode()
        sending = self._client.stream(
            "POST", request.url, headers={**request.headers, **_HEADERS}, content=body
        )
        async with sending as response:
            if response.status_code >= 300:
                text = (await response.aread()).decode("utf-8", "replace")
                raise AnswerError(text, response.status_code, headers=response.headers)
            yield Fragment()  # the server has answered
            async with contextlib.aclosing(
                _fragments(response.aiter_raw(), _Answer(request.reader()))
            ) as fragments:
                async for fragment in fragments:
                    yield fragment

    def _make_client(self) -> httpx.AsyncClient:
        http = importlib.import_module("httpx")
        stack = importlib.import_module("rolling_chat.providers.http_stack")
        limits = importlib.import_module("rolling_chat.providers.answer_limits")
        redirects = importlib.import_module("rolling_chat.providers.redirects")
        keep_loopback_direct(os.environ)
        make: Any = limits.limit_answers(http.AsyncClient)
        try:
            client: httpx.AsyncClient = make(
                verify=_certificates(),
                timeout=stack.timeouts(self._timeout),
                follow_redirects=True,
                event_hooks={"response": [redirects.check_later]},
            )
        except ImportError as error:
            raise ProviderError(ErrorKind.BAD_REQUEST, _NO_SOCKS) from error
        return client


class _Answer:
    """Converts the bytes of an answer to fragments.

    `is_over` means that the rest is ignored; `has_ended` means that the server marked the reply as complete.
    """

    def __init__(self, reader: EventReader) -> None:
        self._reader = reader
        self._events = ServerEvents()
        self.is_over = False
        self.has_ended = False

    def add(self, piece: bytes) -> Iterator[Fragment]:
        """Yield what the events completed by `piece` add to the reply."""
        return self._read(self._events.add(piece))

    def end(self) -> Iterator[Fragment]:
        """Yield what an unfinished last event adds to the reply."""
        return self._read(self._events.end())

    def _read(self, events: Iterable[str]) -> Iterator[Fragment]:
        for data in events:
            if data.startswith(_DONE):
                self.is_over = self.has_ended = True
                yield Fragment(has_ended=True)
                return
            if not data.strip():  # some servers send these as keep-alives
                continue
            try:
                event = json.loads(data)
            except (ValueError, RecursionError) as error:  # a gap: later events would not fit
                _log.info("an event that is no JSON: %s", error)
                self.is_over = True
                return
            if isinstance(event, dict) and (fragment := self._reader.read(event)) is not None:
                self.has_ended = self.has_ended or fragment.has_ended
                yield fragment


async def _fragments(pieces: AsyncIterator[bytes], answer: _Answer) -> AsyncGenerator[Fragment, None]:
    """Yield what each event adds; a connection that breaks after the end of the reply is not an error."""
    http = importlib.import_module("httpx")
    try:
        async for piece in pieces:
            for fragment in answer.add(piece):
                yield fragment
            if answer.is_over:
                await _read_to_end(pieces)
                return
        for fragment in answer.end():
            yield fragment
    except http.TransportError as error:
        if not answer.has_ended:
            raise
        _log.info("the connection broke behind the end of an answer: %s", type(error).__name__)


async def _read_to_end(pieces: AsyncIterator[bytes]) -> None:
    """Read the rest of the answer so that its connection can be reused, unless the server keeps sending."""
    with contextlib.suppress(TimeoutError, ProviderError):
        async with asyncio.timeout(_END_SECONDS):
            async for _piece in pieces:
                pass


def _certificates() -> ssl.SSLContext | bool:
    """Return the certificates for verifying servers; the default ones if the named file is missing."""
    path = os.environ.get("SSL_CERT_FILE")
    if not path or Path(path).exists():
        return True  # httpx reads the variable
    _log.warning("there is no file %s, which SSL_CERT_FILE names", path)
    context: ssl.SSLContext = importlib.import_module("ssl").create_default_context(
        cafile=importlib.import_module("certifi").where()
    )
    return context
