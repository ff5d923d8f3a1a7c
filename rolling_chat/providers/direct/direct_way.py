"""The direct way: one HTTP request, its answer read event by event.

httpx is imported at the first use, in a thread.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any

from rolling_chat import __version__
from rolling_chat.providers.addresses import keep_loopback_direct
from rolling_chat.providers.background_thread import in_background
from rolling_chat.providers.direct.errors import AnswerError
from rolling_chat.providers.direct.server_events import ServerEvents
from rolling_chat.providers.fragments import Fragment

if TYPE_CHECKING:
    import httpx

    from rolling_chat.providers.direct.choice import DirectRequest, EventReader

_log = logging.getLogger("rolling_chat.providers.direct")

_DONE = "[DONE]"
_CONNECT_SECONDS = 15.0  # a host that does not answer a connection within this is not there
_HEADERS = {
    "accept": "text/event-stream, application/json",
    "content-type": "application/json",
    "user-agent": f"rolling-chat/{__version__}",
}


class DirectWay:
    """Sends requests by httpx, with connections that are kept for the next one. `timeout` is in seconds."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._client: httpx.AsyncClient | None = None

    async def load(self) -> None:
        """Import what sending needs, and read the certificates, in a thread."""
        if self._client is None:
            client = await in_background(self._make_client)
            self._client = self._client or client

    async def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def fragments(self, request: DirectRequest) -> AsyncGenerator[Fragment, None]:
        """Send a request; yield its reply. Raises AnswerError, ProviderError, and what httpx raises."""
        await self.load()
        assert self._client is not None
        body = json.dumps(request.body, ensure_ascii=False, separators=(",", ":")).encode()
        sending = self._client.stream(
            "POST", request.url, headers={**_HEADERS, **request.headers}, content=body
        )
        async with sending as response:
            if response.status_code >= 300:
                said = (await response.aread()).decode("utf-8", "replace")
                raise AnswerError(said, response.status_code, headers=response.headers)
            yield Fragment()  # the server has answered
            async with contextlib.aclosing(_fragments(response.aiter_raw(), request.reader())) as fragments:
                async for fragment in fragments:
                    yield fragment

    def _make_client(self) -> httpx.AsyncClient:
        http = importlib.import_module("httpx")
        limits = importlib.import_module("rolling_chat.providers.answer_limits")
        redirects = importlib.import_module("rolling_chat.providers.redirects")
        importlib.import_module("rolling_chat.providers.errors")
        keep_loopback_direct(os.environ)
        make: Any = limits.limit_answers(http.AsyncClient)
        timeout = http.Timeout(self._timeout, connect=min(self._timeout, _CONNECT_SECONDS))
        client: httpx.AsyncClient = make(
            timeout=timeout, follow_redirects=True, event_hooks={"response": [redirects.check_later]}
        )
        return client


async def _fragments(pieces: AsyncIterator[bytes], reader: EventReader) -> AsyncGenerator[Fragment, None]:
    """Yield what each event adds, up to the mark of the end or an event that cannot be read."""
    events = ServerEvents()
    try:
        async for piece in pieces:
            for data in events.add(piece):
                if data.startswith(_DONE):
                    return
                if (fragment := _read(data, reader)) is not None:
                    yield fragment
        for data in events.end():
            if not data.startswith(_DONE) and (fragment := _read(data, reader)) is not None:
                yield fragment
    except _UnreadableError as error:
        _log.info("an event that is no JSON: %s", error)


class _UnreadableError(Exception):
    """An event that is no JSON: the answer broke off in it."""


def _read(data: str, reader: EventReader) -> Fragment | None:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _UnreadableError(str(error)) from error
    return reader.read(event) if isinstance(event, dict) else None
