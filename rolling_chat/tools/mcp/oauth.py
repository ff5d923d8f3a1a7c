"""Log in to an MCP server with OAuth: the SDK's flow, with stored tokens and a loopback address.

No login is started without the user: a server that needs one is reported, and `login` starts it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TypeVar
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from rolling_chat.messages import Json
from rolling_chat.text import exact, one_line
from rolling_chat.tools.mcp.logins import McpLogins
from rolling_chat.tools.mcp.peer import LoginNeededError, ServerError, ShowAddress

log = logging.getLogger("rolling_chat.tools.mcp")

Model = TypeVar("Model", bound=BaseModel)

_PATH = "/callback"
_MAX_REQUEST = 16_000  # bytes
_PAGE = "<!doctype html><title>Rolling Chat</title><p>{text} You can close this page.</p>"


class _TokenStorage:
    """Stores the SDK's tokens with their absolute expiry and the server that renews them.

    The SDK itself stores neither: after a restart it would use an expired token, and ask the wrong server to
    renew it.
    """

    def __init__(self, logins: McpLogins, url: str, *, begins_anew: bool) -> None:
        self._logins = logins
        self._url = url
        self._begins_anew = begins_anew
        self.provider: OAuthClientProvider | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens, and restore the expiry and the server that belong to them."""
        stored = self._logins.get(self._url)
        tokens = _read(OAuthToken, stored.get("tokens"))
        if tokens is None or self._begins_anew or self.provider is None:
            return None
        context, ends = self.provider.context, stored.get("ends")
        context.oauth_metadata = _read(OAuthMetadata, stored.get("server"))
        context.protected_resource_metadata = _read(ProtectedResourceMetadata, stored.get("resource"))
        if isinstance(ends, int | float):
            tokens.expires_in = int(ends - time.time())
            context.update_token_expiry(tokens)
        return tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store tokens with their expiry and server."""
        assert self.provider is not None
        context = self.provider.context
        self._put(
            {
                "tokens": tokens.model_dump(mode="json", exclude_none=True),
                "ends": None if tokens.expires_in is None else time.time() + tokens.expires_in,
                "server": _written(context.oauth_metadata),
                "resource": _written(context.protected_resource_metadata),
            }
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return our registration; None for a login, which needs one with a new callback address."""
        if self._begins_anew:
            return None
        return _read(OAuthClientInformationFull, self._logins.get(self._url).get("client"))

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store our registration."""
        self._put({"client": _written(client_info)})

    def _put(self, more: Mapping[str, Json]) -> None:
        self._logins.put(self._url, {**self._logins.get(self._url), **more})


@asynccontextmanager
async def oauth(url: str, logins: McpLogins, login: ShowAddress | None) -> AsyncIterator[httpx2.Auth | None]:
    """Yield the authorization of requests to a server; None if there is no token and nobody to log in."""
    if login is not None:
        async with _Callback() as callback:
            yield _provider(url, logins, callback, login)
    else:
        yield _provider(url, logins, None, None) if logins.has(url) else None


def _provider(
    url: str, logins: McpLogins, callback: _Callback | None, login: ShowAddress | None
) -> OAuthClientProvider:
    async def show(address: str) -> None:
        if login is None:
            raise LoginNeededError("wants you to log in")
        login(address)

    async def wait_for_callback() -> AuthorizationCodeResult:
        assert callback is not None
        return await callback.result

    storage = _TokenStorage(logins, url, begins_anew=login is not None)
    metadata = OAuthClientMetadata(
        redirect_uris=[AnyUrl(callback.address if callback is not None else "http://127.0.0.1/callback")],
        client_name="Rolling Chat",
        token_endpoint_auth_method="none",  # noqa: S106 - it is not a password
    )
    storage.provider = OAuthClientProvider(url, metadata, storage, show, wait_for_callback)
    return storage.provider


class _Callback:
    """A local server to which the browser returns after a login; `result` is the code that it brings."""

    def __init__(self) -> None:
        self.address = ""
        self.result: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> _Callback:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, limit=_MAX_REQUEST)
        self.address = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{_PATH}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        if not self.result.done():
            self.result.cancel()
        elif not self.result.cancelled():
            self.result.exception()  # retrieved, so that asyncio does not log it

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(
            OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError
        ):
            async with asyncio.timeout(10):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._take(head.decode("latin-1"))
                body = _PAGE.format(text=text).encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        writer.close()

    def _take(self, head: str) -> tuple[str, str]:
        """Handle the browser's request; return the status and the text of the response."""
        method, target, *_ = [*head.partition("\r\n")[0].split(" "), "", ""]
        parts = urlsplit(target)
        if method != "GET" or parts.path != _PATH:
            return "404 Not Found", "There is nothing here."
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if self.result.done():
            return "200 OK", "You have logged in already."
        if "code" not in query:
            why = one_line(exact(query.get("error_description") or query.get("error", "no code")), 200)
            self.result.set_exception(ServerError(f"refused the login: {why}"))
            return "200 OK", "The login was refused."
        self.result.set_result(
            AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))
        )
        return "200 OK", "You are logged in."


def _read(of: type[Model], stored: Json) -> Model | None:
    try:
        return of.model_validate(stored) if stored else None
    except ValidationError:
        return None


def _written(model: BaseModel | None) -> Json:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)
