"""Claude over real HTTP on loopback, against the cache rules and refusals of the real server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rolling_chat.messages import Json, Message
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import ErrorKind, Finished, ProviderError, Request
from tests.providers.conftest import MakeProvider
from tests.support.servers import AnthropicServer, Call, Fail, Reply

MODEL = "anthropic/claude-sonnet-4-5"
SYSTEM = Message("system", "be brief and exact. " * 20 + "|the date is today")
TOOL: dict[str, Json] = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read.",
        "parameters": {"type": "object", "properties": {}},
    },
}
KEY = {"ANTHROPIC_API_KEY": "sk-ant-right"}


def _request(server: AnthropicServer, messages: tuple[Message, ...], previous: int = 0) -> Request:
    return Request(
        MODEL,
        messages,
        (TOOL,),
        max_tokens=500,
        api_base=server.api_base,
        previous_length=previous,
        stable_system_chars=SYSTEM.text.index("|"),
    )


async def _send(
    provider: ModelProvider, server: AnthropicServer, messages: tuple[Message, ...], previous: int = 0
) -> Finished:
    deltas = [delta async for delta in provider.stream(_request(server, messages, previous))]
    assert isinstance(deltas[-1], Finished)
    return deltas[-1]


def _marks(body: Json) -> int:
    return str(body).count("cache_control")


async def test_a_turn_of_many_calls_reads_its_own_cache(make_provider: MakeProvider) -> None:
    provider = make_provider(KEY)
    calls = tuple(Call("read_file", "{}", f"toolu_{number}") for number in range(25))
    script = [Reply("Reading.", calls, reasoning="let me see"), Reply("All read.")]
    async with AnthropicServer(script, key="sk-ant-right") as server:
        prompt = (SYSTEM, Message("user", "read them all"))
        first = await _send(provider, server, prompt)
        results = tuple(Message("tool", "text", tool_call_id=call.id) for call in first.message.tool_calls)
        second = await _send(provider, server, (*prompt, first.message, *results), previous=len(prompt))

    assert first.usage.cached_write_tokens == server.requests[0].tokens
    assert second.usage.cached_read_tokens == server.requests[0].tokens
    assert second.usage.input_tokens == server.requests[1].tokens
    assert second.usage.cost is not None
    assert [_marks(request.body) for request in server.requests] == [3, 4]
    thinking = server.requests[1].messages[1]["content"][0]
    assert thinking["type"] == "thinking"
    assert thinking["signature"]


async def test_an_effort_is_a_budget_of_thought_below_the_output_limit(make_provider: MakeProvider) -> None:
    async with AnthropicServer() as server:
        request = replace(_request(server, (SYSTEM, Message("user", "hi"))), max_tokens=8_000, effort="high")
        async for _ in make_provider(KEY).stream(request):
            pass
    body = server.requests[0].body
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 4_096}
    assert body["max_tokens"] == 8_000


async def test_the_system_text_is_split_where_its_stable_part_ends(make_provider: MakeProvider) -> None:
    async with AnthropicServer() as server:
        await _send(make_provider(KEY), server, (SYSTEM, Message("user", "hi")))

    stable, changing = server.requests[0].body["system"]
    assert stable["cache_control"] == {"type": "ephemeral"}
    assert changing == {"type": "text", "text": "|the date is today"}


async def test_thinking_of_another_model_is_not_sent(make_provider: MakeProvider) -> None:
    provider = make_provider(KEY)
    async with AnthropicServer([Reply("yes", reasoning="hm"), Reply("ok")]) as server:
        first = await _send(provider, server, (SYSTEM, Message("user", "hi")))
        request = Request(
            "anthropic/claude-opus-4-5",
            (SYSTEM, Message("user", "hi"), first.message, Message("user", "and?")),
            max_tokens=500,
            api_base=server.api_base,
        )
        assert [delta async for delta in provider.stream(request)]

    assert [block["type"] for block in server.requests[1].messages[1]["content"]] == ["text"]


async def test_its_refusals_are_understood(make_provider: MakeProvider) -> None:
    provider = make_provider(KEY)
    overloaded = Fail(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    async with AnthropicServer([overloaded, Reply("ok")], window=1000) as server:
        await _send(provider, server, (SYSTEM, Message("user", "hi")))
        with pytest.raises(ProviderError) as too_long:
            await _send(provider, server, (SYSTEM, Message("user", "word " * 2000)))

    assert server.requests[0].refused
    assert (too_long.value.kind, too_long.value.limit) == (ErrorKind.TOO_LONG, 1000)
    assert too_long.value.requested == server.requests[-1].tokens


async def test_without_a_key_the_variable_is_named(make_provider: MakeProvider) -> None:
    async with AnthropicServer(key="sk-ant-right") as server:
        with pytest.raises(ProviderError) as caught:
            await _send(make_provider({}), server, (SYSTEM, Message("user", "hi")))

    assert caught.value.kind is ErrorKind.BAD_KEY
    assert str(caught.value) == "No key for anthropic: set ANTHROPIC_API_KEY."
    assert server.requests == []
