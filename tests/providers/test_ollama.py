"""A local Ollama is found if there is one, without waiting for one that hangs."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web

from rolling_chat.messages import Message, ToolCall
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.ollama import ollama_base, probe_ollama
from rolling_chat.providers.protocol import Finished, Request
from tests.providers.conftest import MakeProvider
from tests.support.patience import PATIENCE_SECONDS


class OllamaServer:
    """Ollama's own wire: the list of models, and a chat that streams lines of JSON."""

    def __init__(self, models: list[str]) -> None:
        self._models = models
        self.requests: list[dict[str, Any]] = []
        self.port = 0

    async def __aenter__(self) -> OllamaServer:
        app = web.Application()
        app.router.add_get("/api/tags", self._tags)
        app.router.add_post("/api/chat", self._chat)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._runner.cleanup()

    @property
    def environ(self) -> dict[str, str]:
        return {"OLLAMA_HOST": f"127.0.0.1:{self.port}"}

    async def _tags(self, _request: web.Request) -> web.Response:
        return web.json_response({"models": [{"name": name} for name in self._models]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await request.json())
        lines: list[dict[str, Any]] = [
            {"message": {"role": "assistant", "content": "hel"}, "done": False},
            {"message": {"role": "assistant", "content": "lo"}, "done": False},
            {
                "message": {"role": "assistant", "content": ""},
                "done": True,
                "done_reason": "stop",
                "prompt_eval_count": 21,
                "eval_count": 2,
            },
        ]
        response = web.StreamResponse(headers={"content-type": "application/x-ndjson"})
        await response.prepare(request)
        for line in lines:
            data = {"model": "tiny", "created_at": "2026-01-01T00:00:00Z", **line}
            await response.write(json.dumps(data).encode() + b"\n")
        return response


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


async def test_the_first_model_that_can_chat_is_found() -> None:
    import asyncio

    async with OllamaServer(["nomic-embed-text:latest", "qwen3:8b"]) as server:
        assert await asyncio.to_thread(probe_ollama, server.environ, PATIENCE_SECONDS) == "ollama/qwen3:8b"


def test_no_server_is_none() -> None:
    with socket.socket() as taken:  # and nobody listens
        taken.bind(("127.0.0.1", 0))
        assert probe_ollama({"OLLAMA_HOST": f"127.0.0.1:{taken.getsockname()[1]}"}) is None


def test_a_server_that_never_answers_is_none(silent_port: int) -> None:
    assert probe_ollama({"OLLAMA_HOST": f"127.0.0.1:{silent_port}"}) is None


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("", ""),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("box:1234", "http://box:1234"),
        ("http://box:1234/", "http://box:1234"),
        ("[::1]:5", "http://[::1]:5"),
        ("box:notaport", "http://127.0.0.1:11434"),
    ],
)
def test_the_address_is_read_in_all_its_spellings(host: str, base: str) -> None:
    assert ollama_base({"OLLAMA_HOST": host}) == base


async def test_a_chat_takes_the_chat_road_with_the_whole_window(make_provider: MakeProvider) -> None:
    async with OllamaServer(["tiny"]) as server:
        provider: ModelProvider = make_provider(server.environ)
        messages = (
            Message("user", "hi"),
            Message("assistant", "", (ToolCall("a", "read_file", ""),)),
            Message("tool", "text", tool_call_id="a"),
        )
        tool = {
            "type": "function",
            "function": {"name": "read_file", "parameters": {"type": "object", "properties": {}}},
        }
        request = Request(
            "ollama/tiny",
            messages,
            (tool,),
            "none",
            window=16_384,
            max_tokens=50,
            api_base=ollama_base(server.environ),
        )
        deltas = [delta async for delta in provider.stream(request)]

    finished = deltas[-1]
    assert isinstance(finished, Finished)
    assert finished.message.content == "hello"
    assert (finished.usage.input_tokens, finished.usage.output_tokens) == (21, 2)
    body = server.requests[0]
    assert body["options"]["num_ctx"] == 16_384
    assert body["options"]["num_predict"] == 50
    assert "tools" not in body
