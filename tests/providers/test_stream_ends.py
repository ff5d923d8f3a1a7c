"""Where a stream ends: by a finish reason, by OpenAI's [DONE], or by breaking off."""

from __future__ import annotations

import json

import pytest

from rolling_chat.messages import Message
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import Delta, ErrorKind, Finished, ProviderError, Request, TextDelta
from tests.providers.conftest import MakeProvider
from tests.support.servers import AnthropicServer, Break, Fail, OpenAIServer, Reply

PROMPT = (Message("user", "hi"),)


def _event(**choice: object) -> str:
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps({**chunk, 'choices': [{'index': 0, **choice}]})}\n\n"


PIECES = _event(delta={"role": "assistant", "content": "half a "}) + _event(delta={"content": "sentence"})
WHOLE = {
    "a finish reason and [DONE]": PIECES + _event(delta={}, finish_reason="stop") + "data: [DONE]\n\n",
    "a finish reason alone": PIECES + _event(delta={}, finish_reason="stop"),
    "a finish reason with the last piece": PIECES + _event(delta={"content": "."}, finish_reason="stop"),
    "[DONE] alone": PIECES + "data: [DONE]\n\n",
    "[DONE] without a space or a line end": PIECES + "data:[DONE]",
}
BROKEN = {
    "nothing": PIECES,
    "an empty piece": PIECES + _event(delta={}),
    "half an event": PIECES + 'data: {"choices": [{"index": 0, "de',
    "[DONE] as text": PIECES + _event(delta={"content": "\ndata: [DONE]\n\n"}),
    "a ping": PIECES + ": ping\n\n",
}


async def _read(provider: ModelProvider, request: Request, seen: list[Delta]) -> None:
    async for delta in provider.stream(request):
        seen.append(delta)  # noqa: PERF401  # what came before an error is wanted


@pytest.mark.parametrize("answer", WHOLE.values(), ids=WHOLE)
async def test_an_end_that_was_sent_is_an_end(provider: ModelProvider, answer: str) -> None:
    seen: list[Delta] = []
    async with OpenAIServer([Fail(200, answer)]) as server:
        await _read(provider, Request("openai/m", PROMPT, api_base=server.api_base), seen)
    assert isinstance(seen[-1], Finished)
    assert seen[-1].message.text.startswith("half a sentence")


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
async def test_a_stream_without_an_end_broke_off(provider: ModelProvider, answer: str) -> None:
    seen: list[Delta] = []
    async with OpenAIServer([Fail(200, answer)]) as server:
        with pytest.raises(ProviderError) as caught:
            await _read(provider, Request("openai/m", PROMPT, api_base=server.api_base), seen)
    assert caught.value.kind is ErrorKind.INTERRUPTED
    assert "".join(delta.text for delta in seen if isinstance(delta, TextDelta)).startswith("half a sentence")


@pytest.mark.parametrize("pieces", [1, 3])
async def test_claudes_stream_without_a_stop_reason_broke_off(
    make_provider: MakeProvider, pieces: int
) -> None:
    provider = make_provider({"ANTHROPIC_API_KEY": "sk-ant-any"})
    async with AnthropicServer([Break(Reply("one two three"), pieces, in_order=True)]) as server:
        request = Request("anthropic/claude-sonnet-4-5", PROMPT, max_tokens=9, api_base=server.api_base)
        with pytest.raises(ProviderError) as caught:
            await _read(provider, request, [])
    assert caught.value.kind is ErrorKind.INTERRUPTED
