"""The web server of the chat: for this machine only, and only with the token in its address."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from importlib import resources
from pathlib import Path

import textual_serve
from aiohttp import WSMsgType, web

from rolling_chat.web.chats import Chats, Page, ServedChat, TooManyChatsError

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
_COOKIE = "rolling_chat_token"
_MAX_TAB = 64  # characters of a tab's name
_MAX_MESSAGE = 4_000_000  # bytes of one message of a page: a long paste
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
# textual.js sets styles by script; nothing is loaded from elsewhere
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ChatServer:
    """A server of chats to the browser on this machine; `options` are the command-line options of each chat.

    A browser must present `token`: in the address the first time, in a cookie from then on.
    """

    def __init__(self, options: Sequence[str], *, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(32)
        self._chats = Chats(options)
        self._port = 0

    @property
    def address(self) -> str:
        """The address to open, including the token; it must be kept secret."""
        return f"http://{HOST}:{self._port}/?token={self.token}"

    async def start(self, port: int) -> web.AppRunner:
        """Listen on a port; 0 is any free one. Raises OSError."""
        runner = web.AppRunner(self._application(), access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, HOST, port)
        try:
            await site.start()
        except OSError:
            await runner.cleanup()
            raise
        self._port = runner.addresses[0][1]
        return runner

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._guard])
        static = Path(textual_serve.__file__).parent / "static"
        application.add_routes(
            [
                web.get("/", self._page),
                web.get("/page.js", _own_file),
                web.get("/page.css", _own_file),
                web.get("/ws/{tab}", self._connect),
                web.static("/static", static),
            ]
        )
        application.on_shutdown.append(self._stop)
        return application

    async def _stop(self, _application: web.Application) -> None:
        await self._chats.stop()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse requests that do not come from this server's own page with the token."""
        # prevent DNS rebinding: a foreign page may let its own host name resolve to this machine
        if request.host not in {f"{HOST}:{self._port}", f"localhost:{self._port}"}:
            raise web.HTTPForbidden(text="Open the address that rolling-chat serve printed.")
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"http://{request.host}":
            raise web.HTTPForbidden(text="Other pages may not use this server.")
        if request.path.startswith("/ws/") and origin is None:
            raise web.HTTPForbidden(text="Only a page may connect here.")
        given = request.cookies.get(_COOKIE, "")
        by_address = request.query.get("token", "") if request.path == "/" else ""
        if not (self._is_token(given) or self._is_token(by_address)):
            raise web.HTTPForbidden(text="Open the address that rolling-chat serve printed, with its token.")
        response = await handler(request)
        if not response.prepared:
            response.headers.update(_HEADERS)
        return response

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    async def _page(self, request: web.Request) -> web.StreamResponse:
        if "token" not in request.query:
            return _file("page.html")
        # redirect, so that the token is neither in the address bar nor in the history
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(_COOKIE, self.token, httponly=True, samesite="Strict", path="/")
        return response

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        tab = request.match_info["tab"]
        if len(tab) > _MAX_TAB or not tab.isascii():
            raise web.HTTPBadRequest(text="A page does not have such a name.")
        socket = web.WebSocketResponse(heartbeat=15, max_msg_size=_MAX_MESSAGE)
        await socket.prepare(request)
        page = Page(socket.send_bytes, socket.send_str, socket.close)
        try:
            chat = await self._chats.for_tab(tab)
            await chat.attach(page, _number(request, "width"), _number(request, "height"))
        except TooManyChatsError as error:
            await socket.close(message=str(error).encode())
            return socket
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await _take(message.data, chat, socket)
        except (asyncio.CancelledError, ConnectionError):
            log.info("a page has gone")
        finally:
            chat.detach(page)
        return socket


async def _take(text: str, chat: ServedChat, socket: web.WebSocketResponse) -> None:
    """Pass on a message from the page; ignore unknown ones."""
    try:
        message = json.loads(text)
    except ValueError:
        return
    match message:
        case ["stdin", str(keys)]:
            # a lone surrogate cannot be written
            await chat.send_bytes(keys.encode("utf-8", "replace"))
        case ["resize", {"width": int(width), "height": int(height)}] if width > 0 and height > 0:
            await chat.set_terminal_size(min(width, 1_000), min(height, 1_000))
        case ["ping", data]:
            await socket.send_json(["pong", data])
        case ["blur"]:
            await chat.blur()
        case ["focus"]:
            await chat.focus()


async def _own_file(request: web.Request) -> web.StreamResponse:
    return _file(request.path.lstrip("/"))


def _file(name: str) -> web.Response:
    text = (resources.files("rolling_chat.web") / name).read_text(encoding="utf-8")
    return web.Response(text=text, content_type=_TYPES[Path(name).suffix], charset="utf-8")


def _number(request: web.Request, name: str) -> int:
    text = request.query.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0
