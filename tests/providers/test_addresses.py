"""Which address the environment names, and that litellm reads none from there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from rolling_chat.messages import Message
from rolling_chat.providers.addresses import (
    address_in,
    describe_server,
    hide_addresses,
    keep_loopback_direct,
    with_credentials,
    without_credentials,
)
from rolling_chat.providers.protocol import ProviderError, Request
from rolling_chat.providers.retries import RetryPolicy
from tests.providers.conftest import MakeProvider
from tests.support.servers import OpenAIServer

LOCAL = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai/gpt-5.4", "OPENAI_BASE_URL"),
        ("gpt-5.4", "OPENAI_API_BASE"),
        ("anthropic/claude-sonnet-5-5", "ANTHROPIC_BASE_URL"),
        ("claude-sonnet-5-5", "ANTHROPIC_API_BASE"),
        ("gemini/gemini-flash-latest", "GEMINI_API_BASE"),
        ("mistral/mistral-large-latest", "MISTRAL_API_BASE"),
        ("bedrock/anthropic.claude", "AWS_BEDROCK_RUNTIME_ENDPOINT"),
        ("huggingface/x", "HF_API_BASE"),
        ("vertex_ai/gemini", "VERTEXAI_API_BASE"),
        ("ollama/qwen3", "OLLAMA_API_BASE"),
        ("ollama_chat/qwen3", "OLLAMA_HOST"),
        ("watsonx/x", "WATSONX_URL"),
        ("volcengine/x", "VOLCENGINE_API_BASE"),
    ],
)
def test_the_variables_of_a_provider_name_its_address_and_no_others(model: str, variable: str) -> None:
    environ = {variable: "http://127.0.0.1:9"}
    assert address_in(environ, model) == "http://127.0.0.1:9"
    assert address_in(environ, "groq/x") == ""
    assert address_in(environ, "demo/offline") == ""
    hide_addresses(environ)
    assert environ == {}


def test_other_variables_are_not_removed() -> None:
    kept = {"IDENTITY_ENDPOINT": "x", "AWS_STS_ENDPOINT": "x", "HTTPS_PROXY": "x", "OPENAI_API_KEY": "x"}
    environ = dict(kept)
    hide_addresses(environ)
    assert environ == kept


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("http://ada:pw@host:8080/v1", "http://host:8080/v1"),
        ("https://token@host/v1/", "https://host/v1/"),
        ("http://ada:p@w@[::1]:5", "http://[::1]:5"),
        ("https://host/v1?api-version=2&api_key=s3cret", "https://host/v1?api-version=2"),
        ("http://[broken", "http://[broken"),
        ("http://host/v1", "http://host/v1"),
        ("", ""),
    ],
)
def test_credentials_are_taken_out_of_an_address_and_found_again(address: str, kept: str) -> None:
    assert without_credentials(address) == kept
    assert with_credentials(kept, ["http://ada:pw@other", address]) == address
    assert with_credentials("http://nowhere", [address]) == "http://nowhere"


class Proxy:
    """An HTTP proxy that refuses everything, and keeps which hosts it was asked for."""

    def __init__(self) -> None:
        self.hosts: list[str] = []
        self.address = ""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Proxy]:
        server = await asyncio.start_server(self._refuse, "127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield self

    async def _refuse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        self.hosts.append(line.split()[1].decode().removesuffix(":443"))
        writer.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
        writer.close()


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai/gpt-4o", "OPENAI_BASE_URL"),
        ("openai/gpt-4o", "OPENAI_API_BASE"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_BASE_URL"),
        ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_BASE"),
        ("gemini/gemini-2.5-pro", "GEMINI_API_BASE"),
        ("mistral/mistral-large-latest", "MISTRAL_API_BASE"),
        ("deepseek/deepseek-chat", "DEEPSEEK_API_BASE"),
        ("groq/openai/gpt-oss-120b", "GROQ_API_BASE"),
        ("xai/grok-4", "XAI_API_BASE"),
        ("openrouter/openrouter/auto", "OPENROUTER_API_BASE"),
        ("cerebras/gpt-oss-120b", "CEREBRAS_API_BASE"),
    ],
)
async def test_the_environment_does_not_redirect_requests_from_the_providers_default_address(
    make_provider: MakeProvider, monkeypatch: pytest.MonkeyPatch, model: str, variable: str
) -> None:
    keys = {f"{model.partition('/')[0].upper()}_API_KEY": "sk-0123456789abcdef"}
    async with Proxy().running() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.address)
        monkeypatch.setenv(variable, LOCAL)
        provider = make_provider(keys, retries=RetryPolicy(minutes=0))
        with pytest.raises(ProviderError):
            async for _ in provider.stream(Request(model, (Message("user", "hi"),), max_tokens=5)):
                pass
    assert proxy.hosts == [describe_server(model, "")]


async def test_requests_to_local_servers_use_no_proxy(
    make_provider: MakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with Proxy().running() as proxy, OpenAIServer() as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.address)
        for base in (server.api_base, server.api_base.replace("127.0.0.1", "localhost")):
            provider = make_provider(retries=RetryPolicy(minutes=0))
            request = Request("openai/scripted", (Message("user", "hi"),), api_base=base)
            assert [delta async for delta in provider.stream(request)]
    assert proxy.hosts == []
    assert len(server.requests) == 2


def test_existing_entries_in_no_proxy_are_kept() -> None:
    environ = {"NO_PROXY": "intranet.example"}
    keep_loopback_direct(environ)
    assert environ["no_proxy"] == "intranet.example,localhost,127.0.0.1,::1"


async def test_litellms_proxy_variable_does_not_redirect_other_providers(
    make_provider: MakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Proxy().running() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.address)
        monkeypatch.setenv("USE_LITELLM_PROXY", "true")
        provider = make_provider({"MISTRAL_API_KEY": "sk-0123456789abcdef"}, retries=RetryPolicy(minutes=0))
        with pytest.raises(ProviderError):
            async for _ in provider.stream(Request("mistral/m", (Message("user", "hi"),), max_tokens=5)):
                pass
    assert proxy.hosts == ["api.mistral.ai"]
