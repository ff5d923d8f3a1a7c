"""Share httpx settings between direct and litellm requests: its early import, and its timeouts."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

# httpx imports all but the last of these at the first connection; this program needs the last at the first
# error.
_AT_FIRST_USE = (
    "httpcore",
    "sniffio",
    "anyio.to_thread",
    "anyio._core._synchronization",
    "anyio._backends._asyncio",
    "rolling_chat.providers.errors",
)
_CONNECT_SECONDS = 15.0  # a host that does not accept a connection within this time is unreachable


def load_http_stack() -> None:
    """Import, in a thread, what a first request would otherwise import on the event loop for 70 ms."""
    for name in _AT_FIRST_USE:
        with suppress(ImportError):  # httpx's dependencies may change
            import_module(name)


def timeouts(seconds: float) -> Any:
    """Return httpx's timeouts for a request: `seconds` for each read, and at most that to connect."""
    return import_module("httpx").Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))
