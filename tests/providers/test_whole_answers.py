"""Unexpected answers: JSON instead of a stream, usage that is not a number."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rolling_chat.messages import Message, Usage
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import ErrorKind, Finished, ProviderError, Request
from rolling_chat.providers.whole_answers import as_events, clean_line
from tests.providers.conftest import MakeProvider
from tests.support.servers import AnthropicServer, Call, Fail, OpenAIServer, Reply

PROMPT = (Message("user", "hi"),)
OPENAI = "openai/m"
CLAUDE = "anthropic/claude-sonnet-4-5"
KEYS = {"ANTHROPIC_API_KEY": "sk-ant-any", "OPENAI_API_KEY": "sk-any"}
REPLY = Reply("Reading it.", (Call("read_file", '{"path": "a"}', "c1"),), reasoning="hm")

BAD_NUMBERS = ("1.5", "NaN", '"abc"', "[1, 2]", "-4", "1e300", "true", "{}", "1" * 30, "null")


async def _send(provider: ModelProvider, model: str, api_base: str) -> Finished:
    request = Request(model, PROMPT, max_tokens=9, api_base=api_base)
    deltas = [delta async for delta in provider.stream(request)]
    assert isinstance(deltas[-1], Finished)
    return deltas[-1]


def _openai(usage: str, *, with_finish: bool) -> str:
    pieces = ['{"choices": [{"index": 0, "delta": {"role": "assistant", "content": "answered"}}]}']
    finish = '"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]'
    if with_finish:
        pieces.append(f'{{{finish}, "usage": {usage}}}')
    else:
        pieces += [f"{{{finish}}}", f'{{"choices": [], "usage": {usage}}}']
    return "".join(f"data: {piece}\n\n" for piece in pieces) + "data: [DONE]\n\n"


def _claude(usage: str) -> str:
    head = f'"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "usage": {usage}'
    events = {
        "message_start": f'"message": {{{head}}}',
        "content_block_start": '"index": 0, "content_block": {"type": "text", "text": ""}',
        "content_block_delta": '"index": 0, "delta": {"type": "text_delta", "text": "answered"}',
        "content_block_stop": '"index": 0',
        "message_delta": f'"delta": {{"stop_reason": "end_turn"}}, "usage": {usage}',
        "message_stop": '"index": 0',
    }
    return "".join(f'event: {kind}\ndata: {{"type": "{kind}", {rest}}}\n\n' for kind, rest in events.items())


@pytest.mark.parametrize("with_finish", [False, True], ids=["after the finish", "with the finish"])
@pytest.mark.parametrize("number", BAD_NUMBERS)
async def test_a_number_that_is_no_count_is_left_out(
    provider: ModelProvider, number: str, with_finish: bool
) -> None:
    usage = f'{{"prompt_tokens": {number}, "completion_tokens": 7, "total_tokens": {number}}}'
    async with OpenAIServer([Fail(200, _openai(usage, with_finish=with_finish))]) as server:
        finished = await _send(provider, OPENAI, server.api_base)
    assert (finished.message.text, finished.usage) == ("answered", Usage(0, 7))


@pytest.mark.parametrize("usage", ['"abc"', "[1, 2]", "1.5", "NaN", "true", '{"prompt_tokens_details": 3}'])
async def test_invalid_usage_is_left_out(provider: ModelProvider, usage: str) -> None:
    async with OpenAIServer([Fail(200, _openai(usage, with_finish=False))]) as server:
        finished = await _send(provider, OPENAI, server.api_base)
    assert (finished.message.text, finished.usage) == ("answered", Usage())


@pytest.mark.parametrize("number", BAD_NUMBERS)
@pytest.mark.parametrize("shape", ['{"input_tokens": %s, "output_tokens": 7}', "%s"], ids=["figure", "whole"])
async def test_claudes_usage_too(make_provider: MakeProvider, shape: str, number: str) -> None:
    async with AnthropicServer([Fail(200, _claude(shape % number))]) as server:
        finished = await _send(make_provider(KEYS), CLAUDE, server.api_base)
    assert finished.message.text == "answered"
    assert finished.usage.input_tokens == 0
    assert finished.usage.output_tokens in {0, 7}


@pytest.mark.parametrize(("kind", "model"), [(OpenAIServer, OPENAI), (AnthropicServer, CLAUDE)])
async def test_an_answer_that_is_not_streamed_is_taken(
    make_provider: MakeProvider, kind: type[OpenAIServer | AnthropicServer], model: str
) -> None:
    whole = kind().whole(REPLY, {"model": "m", "messages": []}, 11)
    async with kind([REPLY, Fail(200, whole)]) as server:
        provider = make_provider(KEYS)
        streamed = await _send(provider, model, server.api_base)
        at_once = await _send(provider, model, server.api_base)
    assert at_once.message.text == streamed.message.text == "Reading it."
    assert at_once.message.tool_calls == streamed.message.tool_calls
    assert at_once.message.ending is streamed.message.ending
    assert at_once.usage.input_tokens == 11


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"message": "the flux is low", "type": "server_error"}},
        {"error": "the flux is low"},
        {"object": "error", "message": "the flux is low"},
        {"detail": "the flux is low"},
    ],
)
async def test_an_error_that_is_called_an_answer_is_quoted(
    provider: ModelProvider, answer: dict[str, Any]
) -> None:
    async with OpenAIServer([Fail(200, answer)]) as server:
        with pytest.raises(ProviderError) as caught:
            await _send(provider, OPENAI, server.api_base)
    assert "the flux is low" in str(caught.value)
    assert caught.value.kind is not ErrorKind.INTERRUPTED


def test_geminis_array_is_a_stream() -> None:
    parts = [{"candidates": [{"content": {"parts": [{"text": text}]}}]} for text in "ab"]
    events = as_events(json.dumps(parts).encode()).decode()
    assert [json.loads(event[6:]) for event in events.split("\n\n") if event] == parts


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"3", b"{", b"[" * 100_000, b'{"choices": []}', b"<html>"]
)
def test_a_body_that_is_no_answer_stays_unchanged(body: bytes) -> None:
    assert as_events(body) == body


@pytest.mark.parametrize(
    "line",
    [
        b'data: {"usage":{"prompt_tokens":3,"completion_tokens":1,"cost":0.25,"is_byok":false}}\n',
        b'data: {"usage": null}\r\n',
        b'data: {"choices":[{"delta":{"content":"usage"}}]}\n',
        b"data: {broken usage\n",
        b": usage\n",
        b'{"usageMetadata":{"promptTokenCount":3,"promptTokensDetails":[{"modality":"TEXT","tokenCount":3}]}}\n',
    ],
)
def test_a_valid_line_is_not_changed(line: bytes) -> None:
    assert clean_line(line) == line


def test_ollamas_counts_are_corrected() -> None:
    assert json.loads(clean_line(b'{"done":true,"prompt_eval_count":"x","eval_count":3}\n')) == {
        "done": True,
        "prompt_eval_count": 0,
        "eval_count": 3,
    }
