"""Send requests to any model that litellm supports."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from rolling_chat.providers.addresses import hide_addresses, keep_loopback_direct
from rolling_chat.providers.background_thread import in_background
from rolling_chat.providers.fragments import Fragment
from rolling_chat.providers.http_stack import timeouts
from rolling_chat.providers.litellm_chunks import fragments_of, usage_of
from rolling_chat.providers.litellm_loading import close_connections, load_litellm, warm_up
from rolling_chat.redaction import secrets_in


class LiteLLMRoute:
    """Sends requests with litellm, which is imported on first use.

    `environ` contains the keys that must not appear in its log, `log_file`. `timeout` is in seconds.
    """

    def __init__(self, environ: Mapping[str, str], log_file: Path | None, timeout: float) -> None:
        self._environ = environ
        self._log_file = log_file
        self._timeout = timeout
        self._litellm: ModuleType | None = None
        self._is_warm = False

    async def load(self) -> ModuleType:
        """Import litellm in a thread, which takes seconds the first time."""
        if self._litellm is None:
            self._litellm = await in_background(self._load)
        return self._litellm

    async def warm_up(self) -> None:
        """Import litellm and make a request that stays within the process."""
        litellm = await self.load()
        if not self._is_warm:
            self._is_warm = True
            await warm_up(litellm)

    async def close(self) -> None:
        """Close the connections that litellm keeps open; a later request opens new ones."""
        if self._litellm is not None:
            await close_connections(self._litellm)

    async def fragments(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Fragment, None]:
        """Send a request with litellm's `arguments` and yield its reply. Raises whatever litellm raises."""
        litellm = await self.load()
        response = await litellm.acompletion(
            **arguments,
            stream=True,
            stream_options={"include_usage": True},
            # for APIs that take only one timeout, litellm uses the one for reading
            timeout=timeouts(self._timeout),
            num_retries=0,
            max_retries=0,
            # litellm drops parameters that a model does not support instead of failing the request
            drop_params=True,
        )
        try:
            yield Fragment()  # the server has answered
            async for chunk in response:
                for fragment in fragments_of(chunk):
                    yield fragment
                for fragment in _stored_fragments(response):
                    yield fragment
            for fragment in _stored_fragments(response):
                yield fragment
        finally:
            await response.aclose()

    def _load(self) -> ModuleType:
        """Load litellm, and adjust the environment that it reads."""
        litellm = load_litellm(self._log_file, secrets_in(self._environ))
        hide_addresses(os.environ)
        keep_loopback_direct(os.environ)
        return litellm


def _stored_fragments(response: Any) -> Iterator[Fragment]:
    """Yield what litellm stores outside its chunks: usage and the server's own finish reason.

    litellm invents a reason at the end of any stream. Gemini's is intermittent until the next chunk, because
    more may follow.
    """
    for chunk in response.chunks:
        usage = usage_of(chunk)
        if usage is not None:
            yield Fragment(usage=usage)
    response.chunks.clear()  # otherwise litellm keeps every chunk, several kilobytes each
    if response.received_finish_reason or response.intermittent_finish_reason:
        yield Fragment(has_ended=True)
