"""A server that runs on the test's own event loop, or in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

from aiohttp import web

from tests.support.patience import PATIENCE_SECONDS
from tests.support.servers.script import Break, Drop, Fail, Hang, Raw, Recorded, Reply, Script, Step


class ScriptedServer:
    """What the wire formats share: the script, the record of requests, starting and stopping.

    `window` is in tokens. `key`, where given, is the only one that is let in. `models` are listed,
    where there are any.
    """

    path = ""
    count_path = ""  # where requests are counted without an answer

    def __init__(
        self,
        script: Iterable[Step] | Script = (),
        *,
        window: int = 128_000,
        key: str = "",
        models: Sequence[str] = (),
    ) -> None:
        self._script = script if callable(script) else None
        self._steps: deque[Step] = deque(() if callable(script) else script)
        self.window = window
        self.key = key
        self.models = models
        self.requests: list[Recorded] = []
        self.counted: list[Recorded] = []  # what was only to be counted
        self.port = 0
        self._prefix = ""
        self._disconnected = threading.Event()
        self._hanging = threading.Event()
        self._runner: web.AppRunner | None = None

    @property
    def address(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def api_base(self) -> str:
        """The address that goes into `api_base`."""
        return self.address

    def then(self, *steps: Step) -> None:
        """Add to the end of the script."""
        self._steps.extend(steps)

    async def wait_hanging(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Return when a reply has sent its first piece and hangs."""
        assert await asyncio.to_thread(self._hanging.wait, seconds), "no reply began to stream"

    async def wait_disconnected(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Return when a client has gone away in mid-answer."""
        assert await asyncio.to_thread(self._disconnected.wait, seconds), "the client stayed connected"

    async def start(self) -> None:
        """Listen on a free port of 127.0.0.1."""
        app = web.Application(client_max_size=64_000_000)
        app.router.add_post(self.path, self._handle)
        app.router.add_post("/{prefix}" + self.path, self._redirect)
        if self.count_path:
            app.router.add_post(self.count_path, self._count)
        if self.models:
            app.router.add_get("/v1/models", self._list_models)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    def redirect_from(self, prefix: str) -> None:
        """Redirect everything below `prefix` to the same path without it; before or while it runs."""
        self._prefix = prefix

    async def stop(self) -> None:
        """Close the port and every connection."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()

    @contextlib.contextmanager
    def in_thread(self) -> Iterator[Self]:
        """Run on an event loop of its own, for as long as the block lasts."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.start(), loop).result(PATIENCE_SECONDS)
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self.stop(), loop).result(PATIENCE_SECONDS)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(PATIENCE_SECONDS)
            loop.close()

    # what a wire format fills in

    def count(self, body: dict[str, Any]) -> int:
        """Tokens of the prompt in `body`."""
        raise NotImplementedError

    def refusal(self, body: dict[str, Any], tokens: int) -> Fail | None:
        """The answer to a request that the real server would not take."""
        raise NotImplementedError

    def count_answer(self, tokens: int) -> dict[str, Any]:
        """The answer to a request that is only to be counted."""
        raise NotImplementedError

    def is_authorised(self, headers: Any) -> bool:
        """Whether the request carries the key."""
        raise NotImplementedError

    def unauthorised(self) -> Fail:
        """The answer to a request with a wrong key."""
        raise NotImplementedError

    def events(self, reply: Reply, body: dict[str, Any], tokens: int) -> Iterator[tuple[str, bool]]:
        """The reply's events as they go over the wire, and whether each is a piece of its text."""
        raise NotImplementedError

    def whole(self, reply: Reply, body: dict[str, Any], tokens: int) -> dict[str, Any]:
        """The reply in one JSON object, for who did not ask for a stream."""
        raise NotImplementedError

    async def _redirect(self, request: web.Request) -> web.Response:
        if not self._prefix or not request.path.startswith(self._prefix):
            return web.Response(status=404)
        return web.Response(status=307, headers={"location": request.path.removeprefix(self._prefix)})

    async def _list_models(self, _request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": name} for name in self.models]})

    def _next_step(self, body: dict[str, Any]) -> Step:
        if self._script is not None:
            return self._script(body)
        return self._steps.popleft() if self._steps else Reply("ok")

    async def _count(self, request: web.Request) -> web.Response:
        body = await request.json()
        if self.key and not self.is_authorised(request.headers):
            return self._failed(request, body, 0, self.unauthorised())
        tokens = self.count(body)
        self.counted.append(Recorded(body, dict(request.headers), tokens))
        return web.json_response(self.count_answer(tokens))

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if self.key and not self.is_authorised(request.headers):
            return self._failed(request, body, 0, self.unauthorised())
        tokens = self.count(body)
        refused = self.refusal(body, tokens)
        if refused is not None:
            return self._failed(request, body, tokens, refused)
        step = self._next_step(body)
        if isinstance(step, Fail):
            return self._failed(request, body, tokens, step)
        self.requests.append(Recorded(body, dict(request.headers), tokens))
        if isinstance(step, Drop):
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        if isinstance(step, Raw):
            events = [event for event, _is_text in self.events(step.reply, body, tokens)]
            return await step.write(request, events, self.whole(step.reply, body, tokens))
        if not body.get("stream"):
            return await self._answer(request, body, tokens, step)
        return await self._stream(request, body, tokens, step)

    async def _answer(
        self, request: web.Request, body: dict[str, Any], tokens: int, step: Reply | Break | Hang
    ) -> web.Response:
        """Without a stream a torn reply is none at all, and one that hangs has not begun."""
        if isinstance(step, Reply):
            return web.json_response(self.whole(step, body, tokens))
        if isinstance(step, Break):
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        self._hanging.set()
        try:
            await asyncio.Event().wait()
        finally:
            self._disconnected.set()
        raise AssertionError("an event that nobody sets was set")

    def _failed(self, request: web.Request, body: dict[str, Any], tokens: int, fail: Fail) -> web.Response:
        text = fail.body if isinstance(fail.body, str) else json.dumps(fail.body)
        self.requests.append(Recorded(body, dict(request.headers), tokens, refused=text or str(fail.status)))
        kind = "text/plain" if isinstance(fail.body, str) else "application/json"
        return web.Response(status=fail.status, text=text, content_type=kind, headers=fail.headers)

    async def _stream(
        self, request: web.Request, body: dict[str, Any], tokens: int, step: Reply | Break | Hang
    ) -> web.StreamResponse:
        reply = step if isinstance(step, Reply) else step.reply
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        sent = 0
        try:
            await response.prepare(request)
            for event, is_text in self.events(reply, body, tokens):
                if isinstance(step, Break) and step.in_order and sent >= step.pieces:
                    break
                if isinstance(step, Break) and is_text and sent >= step.pieces:
                    assert request.transport is not None
                    request.transport.abort()
                    return response
                await response.write(event.encode())
                sent += is_text
                if isinstance(step, Hang) and is_text:
                    self._hanging.set()
                    await asyncio.Event().wait()
                if is_text:
                    await asyncio.sleep(reply.pause)
            await response.write_eof()
        except (asyncio.CancelledError, ConnectionError):
            self._disconnected.set()
            raise
        return response
