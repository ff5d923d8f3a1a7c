"""Both ways to the same server, and their results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest_asyncio
from aiohttp import web

from rolling_chat.messages import Message, Usage
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import (
    Delta,
    Finished,
    ProviderError,
    ReasoningDelta,
    Request,
    TextDelta,
)
from rolling_chat.providers.retries import RetryPolicy
from rolling_chat.settings.catalog import load_catalog

KEYS = {f"{name}_API_KEY": "sk-0123456789" for name in ("OPENAI", "ANTHROPIC", "GROQ", "DEEPSEEK")}


@dataclass(frozen=True)
class Outcome:
    """What came of a request: all that a user or the next request would notice."""

    text: str
    reasoning: str
    message: Message | None
    usage: Usage | None
    error: tuple[str, str, int | None, int | None, int | None, float | None] | None


class Recorder:
    """A server that answers with given bytes in given pieces, and keeps what it was asked."""

    def __init__(self) -> None:
        self.status = 200
        self.pieces: list[bytes] = []
        self.headers: dict[str, str] = {}
        self.requests: list[tuple[str, dict[str, str], object]] = []
        self.address = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.path, dict(request.headers), await request.json()))
        kind = "text/event-stream" if self.status == 200 else "application/json"
        response = web.StreamResponse(status=self.status, headers={"content-type": kind, **self.headers})
        await response.prepare(request)
        for piece in self.pieces:
            await response.write(piece)
        return response


@dataclass(frozen=True)
class BothWays:
    """A provider for each way, and the server that both ask."""

    direct: ModelProvider
    litellm: ModelProvider
    server: Recorder

    async def outcomes(self, request: Request) -> tuple[Outcome, Outcome]:
        """Send the same request both ways."""
        return await _outcome(self.direct, request), await _outcome(self.litellm, request)


async def _outcome(provider: ModelProvider, request: Request) -> Outcome:
    deltas: list[Delta] = []
    error = None
    try:
        async for delta in provider.stream(request):
            deltas.append(delta)  # noqa: PERF401  # what came before an error is wanted
    except ProviderError as raised:
        error = (
            raised.kind.value, str(raised), raised.limit, raised.requested, raised.prompt, raised.retry_after
        )  # fmt: skip
    end = deltas[-1] if deltas else None
    return Outcome(
        "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)),
        "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)),
        end.message if isinstance(end, Finished) else None,
        end.usage if isinstance(end, Finished) else None,
        error,
    )


@pytest_asyncio.fixture
async def both_ways() -> AsyncIterator[BothWays]:
    server = Recorder()
    app = web.Application(client_max_size=2**30)
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    catalog, once = load_catalog(), RetryPolicy(minutes=0)
    ways = BothWays(
        ModelProvider(environ=KEYS, catalog=catalog, retries=once, direct="auto"),
        ModelProvider(environ=KEYS, catalog=catalog, retries=once, direct="off"),
        server,
    )
    try:
        yield ways
    finally:
        await ways.direct.close()
        await ways.litellm.close()
        await runner.cleanup()


def is_direct(request: Request, provider: ModelProvider) -> bool:
    """Whether a provider sends a request without litellm."""
    ask: Callable[..., object] = provider._direct_request
    return ask(provider._arguments(request)) is not None
