"""Refuse redirects to another server, because a request contains the whole conversation and often a key.

This module imports httpx: import it together with litellm, never before the first paint.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx

from rolling_chat.providers.protocol import ErrorKind, ProviderError
from rolling_chat.text import printable

_DEFAULT_PORTS = {"http": 80, "https": 443}


def refuse_redirects() -> None:
    """Make all HTTP clients created from now on refuse redirects to another server."""
    _add_hook(httpx.AsyncClient, check_later)
    _add_hook(httpx.Client, _check)
    _refuse_in_aiohttp()


def check_redirect(source: str, target: str) -> None:
    """Raise ProviderError if a redirect's `target` is on another server than `source`."""
    origin = urlsplit(source)
    try:
        destination = urlsplit(urljoin(source, target))
    except ValueError as error:
        line = f"{_shown(origin)} redirects to an invalid address: not followed."
        raise ProviderError(ErrorKind.BAD_REQUEST, line) from error
    if _origin(origin) != _origin(destination):
        raise ProviderError(
            ErrorKind.BAD_REQUEST,
            f"{_shown(origin)} redirects to another server, {_shown(destination)}: not followed. "
            "If that is right, give its address with --api-base or /model NAME ADDRESS.",
        )


def _check(response: httpx.Response) -> None:
    if response.has_redirect_location:
        check_redirect(str(response.request.url), response.headers["location"])


async def check_later(response: httpx.Response) -> None:
    _check(response)


def _add_hook(client: type[httpx.Client] | type[httpx.AsyncClient], hook: Callable[..., Any]) -> None:
    make = client.__init__

    @functools.wraps(make)
    def make_checked(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        hooks = self.event_hooks
        self.event_hooks = {**hooks, "response": [hook, *hooks["response"]]}

    setattr(client, "__init__", make_checked)  # noqa: B010  # mypy takes no assignment to it


def _refuse_in_aiohttp() -> None:
    """Refuse redirects in aiohttp too, which litellm uses for a few providers."""
    import aiohttp  # noqa: PLC0415  # comes with litellm

    async def check(_session: Any, _context: Any, redirect: aiohttp.TraceRequestRedirectParams) -> None:
        check_redirect(str(redirect.url), redirect.response.headers.get("location", ""))

    make = aiohttp.ClientSession.__init__

    @functools.wraps(make)
    def make_checked(self: Any, *args: Any, **kwargs: Any) -> None:
        trace = aiohttp.TraceConfig()
        trace.on_request_redirect.append(check)
        kwargs["trace_configs"] = [*(kwargs.get("trace_configs") or ()), trace]
        make(self, *args, **kwargs)

    setattr(aiohttp.ClientSession, "__init__", make_checked)  # noqa: B010


def _origin(parts: SplitResult) -> tuple[str, str, int | None]:
    try:
        port = parts.port
    except ValueError:
        port = -1
    return parts.scheme, parts.hostname or "", port or _DEFAULT_PORTS.get(parts.scheme)


def _shown(parts: SplitResult) -> str:
    host = parts.netloc.rpartition("@")[2]
    return printable(f"{parts.scheme}://{host}", 200)
