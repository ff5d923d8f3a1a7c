"""The offline model behind the protocol of all models."""

from __future__ import annotations

import asyncio

import pytest

from rolling_chat.context import estimate_tokens
from rolling_chat.messages import Ending, Json, Message
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import (
    Delta,
    ErrorKind,
    Finished,
    ProviderError,
    Request,
    TextDelta,
    ToolCallDelta,
)
from rolling_chat.providers.text_calls import as_called, find_calls

SYSTEM = Message("system", "You help in a terminal.")
TOOL: dict[str, Json] = {
    "type": "function",
    "function": {
        "name": "list_files",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}


async def _read(provider: ModelProvider, request: Request) -> list[Delta]:
    return [delta async for delta in provider.stream(request)]


def _finished(deltas: list[Delta]) -> Finished:
    assert isinstance(deltas[-1], Finished)
    return deltas[-1]


async def test_it_streams_word_by_word_and_counts_exactly_as_the_pipeline_does(
    provider: ModelProvider,
) -> None:
    request = Request("demo/offline", (SYSTEM, Message("user", "hello")), (TOOL,))
    deltas = await _read(provider, request)

    texts = [delta.text for delta in deltas if isinstance(delta, TextDelta)]
    assert len(texts) > 20
    assert "".join(texts) == _finished(deltas).message.content
    wire = provider.wire_form(request)
    assert _finished(deltas).usage.input_tokens == estimate_tokens(wire, "demo/offline", [TOOL])
    assert _finished(deltas).usage.cost == 0.0


async def test_calls_come_in_fragments(provider: ModelProvider) -> None:
    first = Request("demo/offline", (SYSTEM, Message("user", "list files in src")), (TOOL,))
    deltas = await _read(provider, first)
    reply = _finished(deltas).message

    assert len([delta for delta in deltas if isinstance(delta, ToolCallDelta)]) == 2
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("list_files", '{"path": "src"}')]
    result = Message("tool", "a.py\nb.py", tool_call_id=reply.tool_calls[0].id)
    second = Request("demo/offline", (*first.messages, reply, result), (TOOL,))
    assert "a.py\nb.py" in _finished(await _read(provider, second)).message.text
    counted = estimate_tokens(provider.wire_form(second), "demo/offline", [TOOL])
    assert _finished(await _read(provider, second)).usage.input_tokens == counted


async def test_tool_choice_none_is_honoured(provider: ModelProvider) -> None:
    request = Request("demo/offline", (Message("user", "list files"),), (TOOL,), tool_choice="none")
    assert _finished(await _read(provider, request)).message.tool_calls == ()


async def test_an_answer_is_cut_at_max_tokens(provider: ModelProvider) -> None:
    request = Request("demo/offline", (Message("user", "hello"),), max_tokens=5)
    finished = _finished(await _read(provider, request))

    assert finished.message.ending is Ending.LENGTH
    assert 0 < finished.usage.output_tokens <= 5


async def test_a_prompt_over_the_window_is_refused_with_exact_numbers(provider: ModelProvider) -> None:
    request = Request("demo/offline-3000", (SYSTEM, Message("user", "word " * 4000)))
    with pytest.raises(ProviderError) as caught:
        await _read(provider, request)

    assert caught.value.kind is ErrorKind.TOO_LONG
    assert caught.value.limit == 3000
    assert caught.value.requested == estimate_tokens(provider.wire_form(request), "demo/offline")


async def test_the_window_is_exact_to_the_token(provider: ModelProvider) -> None:
    message = Message("user", "word " * 2000)
    tokens = estimate_tokens([message], "demo/offline")
    fitting = Request(f"demo/offline-{tokens + 10}", (message,), max_tokens=10)
    too_long = Request(f"demo/offline-{tokens + 9}", (message,), max_tokens=10)

    assert _finished(await _read(provider, fitting)).usage.input_tokens == tokens
    with pytest.raises(ProviderError, match="too long"):
        await _read(provider, too_long)


async def test_an_unknown_window_is_an_unknown_model(provider: ModelProvider) -> None:
    with pytest.raises(ProviderError) as caught:
        await _read(provider, Request("demo/offline-x", (Message("user", "hi"),)))
    assert caught.value.kind is ErrorKind.MODEL_UNKNOWN


async def test_it_can_be_stopped(provider: ModelProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLING_CHAT_OFFLINE_DELAY", "60000")
    stream = provider.stream(Request("demo/offline", (Message("user", "hello"),)))
    assert isinstance(await anext(stream), TextDelta)
    reading = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


async def test_an_invalid_delay_means_the_default(
    provider: ModelProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLING_CHAT_OFFLINE_DELAY", "soon")
    request = Request("demo/offline", (Message("user", "hello"),), max_tokens=3)
    assert _finished(await _read(provider, request)).message.content


async def test_it_writes_its_calls_where_tools_are_described_as_text(provider: ModelProvider) -> None:
    asked = Message("user", "list files")
    request = Request("demo/offline", (SYSTEM, asked), (TOOL,), text_tools=True)
    message = _finished(await _read(provider, request)).message
    found = find_calls(message.text, [TOOL])
    assert found is not None
    assert (message.tool_calls, [call.name for call in found.calls]) == ((), ["list_files"])

    result = Message("tool", "a.txt", tool_call_id=found.calls[0].id)
    after = (SYSTEM, asked, as_called(message, found), result)
    answer = _finished(await _read(provider, Request("demo/offline", after, (TOOL,), text_tools=True)))
    assert "a.txt" in answer.message.text
