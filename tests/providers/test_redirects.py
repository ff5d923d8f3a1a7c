"""A redirect to another server is refused, whichever HTTP client a provider uses."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import aiohttp
import httpx
import pytest
from aiohttp import web

from rolling_chat.messages import Message
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import ErrorKind, Finished, ProviderError, Request
from rolling_chat.providers.redirects import check_redirect
from tests.providers.conftest import MakeProvider
from tests.support.servers import OpenAIServer, Reply

ROADS = [
    "openai/scripted", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro", "ollama_chat/tiny",
    "mistral/mistral-large-latest", "hosted_vllm/scripted",
]  # fmt: skip
KEYS = {f"{name}_API_KEY": "sk-0123456789" for name in ("OPENAI", "ANTHROPIC", "GEMINI", "MISTRAL")}


@contextlib.asynccontextmanager
async def _redirecting(target: str, status: int) -> AsyncIterator[str]:
    """A server that sends everyone to the same path at `target`; `{own}` there is its own address."""
    own = ""

    async def redirect(request: web.Request) -> web.Response:
        path = request.rel_url.path.removeprefix("/old")
        return web.Response(status=status, headers={"location": target.format(own=own) + path})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", redirect)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    own = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield own
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def _listening() -> AsyncIterator[tuple[str, list[str]]]:
    """A server that keeps every body that comes."""
    bodies: list[str] = []

    async def keep(request: web.Request) -> web.Response:
        bodies.append(await request.text())
        return web.Response(status=500)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", keep)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", bodies
    finally:
        await runner.cleanup()


async def _ask(provider: ModelProvider, model: str, api_base: str) -> None:
    request = Request(model, (Message("user", "a secret"),), api_base=api_base, max_tokens=5)
    async for _ in provider.stream(request):
        pass


@pytest.mark.parametrize("status", [307, 302])
@pytest.mark.parametrize("model", ROADS)
async def test_a_redirect_to_another_server_is_refused(
    make_provider: MakeProvider, model: str, status: int
) -> None:
    provider = make_provider(KEYS)
    async with _listening() as (elsewhere, bodies), _redirecting(elsewhere, status) as here:
        with pytest.raises(ProviderError) as caught:
            await _ask(provider, model, here)
    assert bodies == []
    assert caught.value.kind is ErrorKind.BAD_REQUEST
    assert f"{here} redirects to another server, {elsewhere}: not followed." in str(caught.value)


# once in a process: litellm keeps that road's connections for the next event loop, where they wait for ever
@pytest.mark.parametrize("direct", ["off"], indirect=True)
async def test_litellms_own_aiohttp_client_refuses_redirects(make_provider: MakeProvider) -> None:
    provider = make_provider(KEYS)  # what it makes of the refusal does not always name it
    async with _listening() as (elsewhere, bodies), _redirecting(elsewhere, 307) as here:
        with pytest.raises(ProviderError):
            await _ask(provider, "aiohttp_openai/scripted", here)
    assert bodies == []


async def test_a_redirect_within_the_same_server_is_followed(provider: ModelProvider) -> None:
    async with OpenAIServer([Reply("hello")]) as server:
        server.redirect_from("/old")
        api_base = f"{server.address}/old/v1"
        request = Request("openai/scripted", (Message("user", "hi"),), api_base=api_base)
        deltas = [delta async for delta in provider.stream(request)]
    assert isinstance(deltas[-1], Finished)
    assert deltas[-1].message.content == "hello"


async def test_clients_made_by_other_code_refuse_too(provider: ModelProvider) -> None:
    await provider.warm_up("gemini/x", None)  # from here on
    async with _listening() as (elsewhere, bodies), _redirecting(elsewhere, 307) as here:
        async with httpx.AsyncClient(follow_redirects=True) as client:
            with pytest.raises(ProviderError):
                await client.post(here, content="a secret")
        async with aiohttp.ClientSession() as session:
            with pytest.raises(ProviderError):
                await session.post(here, data="a secret")
    assert bodies == []


@pytest.mark.parametrize(
    "target",
    ["/v1/x", "x", "?a=1", "http://host:8080/", "//host:8080/x", "http://HOST:8080", "http://u:p@host:8080/"],
)
def test_the_same_scheme_host_and_port_is_the_same_server(target: str) -> None:
    check_redirect("http://host:8080/v1/chat", target)


@pytest.mark.parametrize(
    "target", ["http://host/", "https://host:8080/", "http://host.evil:8080/", "//evil/", "http://host:x/"]
)
def test_anything_else_is_another_server(target: str) -> None:
    with pytest.raises(ProviderError, match="another server"):
        check_redirect("http://host:8080/v1/chat", target)
