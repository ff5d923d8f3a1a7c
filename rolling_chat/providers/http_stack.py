"""What both ways to a model share of httpx: when it is imported, and how long a request waits."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

# httpx and what is below it import all but the last at the first connection, we the last at the first error.
_AT_FIRST_USE = (
    "httpcore",
    "sniffio",
    "anyio.to_thread",
    "anyio._core._synchronization",
    "anyio._backends._asyncio",
    "rolling_chat.providers.errors",
)
_CONNECT_SECONDS = 15.0  # a host that does not answer a connection within this is not there


def load_http_stack() -> None:
    """Import what a first request would import on the event loop, for 70 ms; for a thread."""
    for name in _AT_FIRST_USE:
        with suppress(ImportError):  # what httpx goes by may change
            import_module(name)


def timeouts(seconds: float) -> Any:
    """Return httpx's time limits of a request: `seconds` for each read, and less to connect."""
    return import_module("httpx").Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))
