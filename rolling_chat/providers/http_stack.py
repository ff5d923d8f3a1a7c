"""Import what sends requests before the first one is sent."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

# httpx and what is below it import all but the last at the first connection, we the last at the first error.
_AT_FIRST_USE = (
    "httpcore",
    "sniffio",
    "anyio.to_thread",
    "anyio._core._synchronization",
    "anyio._backends._asyncio",
    "rolling_chat.providers.errors",
)


def load_http_stack() -> None:
    """Import what a first request would import on the event loop, for 70 ms; for a thread."""
    for name in _AT_FIRST_USE:
        with suppress(ImportError):  # what httpx goes by may change
            import_module(name)
