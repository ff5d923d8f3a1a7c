"""Gemini over real HTTP on loopback: its signatures go back where they came from."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from rolling_chat.messages import Json, Message
from rolling_chat.providers.protocol import Finished, Request
from tests.providers.conftest import MakeProvider

TOOL: dict[str, Json] = {
    "type": "function",
    "function": {
        "name": "list_files",
        "description": "List.",
        "parameters": {"type": "object", "properties": {}},
    },
}
PARTS = (
    {"text": "Looking. "},
    {"functionCall": {"name": "list_files", "args": {"path": "a"}}, "thoughtSignature": "U0lHMQ=="},
    {"functionCall": {"name": "list_files", "args": {"path": "b"}}},
    {"text": "", "thoughtSignature": "U0lHMg=="},
)
USAGE = {
    "promptTokenCount": 11,
    "candidatesTokenCount": 5,
    "totalTokenCount": 20,
    "thoughtsTokenCount": 4,
    "cachedContentTokenCount": 3,
}


async def test_signatures_go_back_byte_for_byte(make_provider: MakeProvider) -> None:
    bodies: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        bodies.append(await request.json())
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for place, part in enumerate(PARTS):
            last = place == len(PARTS) - 1
            candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
            event = {"candidates": [{**candidate, **({"finishReason": "STOP"} if last else {})}]}
            event |= {"usageMetadata": USAGE} if last else {}
            await response.write(f"data: {json.dumps(event)}\r\n\r\n".encode())
        return response

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    api_base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    provider = make_provider({"GEMINI_API_KEY": "AIzaSyA-not-a-key-0123456789"})

    async def send(*messages: Message) -> Finished:
        request = Request("gemini/gemini-2.5-pro", messages, (TOOL,), api_base=api_base)
        deltas = [delta async for delta in provider.stream(request)]
        assert isinstance(deltas[-1], Finished)
        return deltas[-1]

    question = Message("user", "which files?")
    first = await send(question)
    results = [Message("tool", "a.py", tool_call_id=call.id) for call in first.message.tool_calls]
    await send(question, first.message, *results)
    await runner.cleanup()

    assert len(results) == 2
    assert all(len(call.id) < 64 for call in first.message.tool_calls)
    assert first.usage.input_tokens == 11
    assert first.usage.cached_read_tokens == 3
    sent = bodies[1]["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in sent] == ["U0lHMg==", "U0lHMQ==", None]
