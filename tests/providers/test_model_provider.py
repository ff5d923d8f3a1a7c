"""Requests over real HTTP on loopback: OpenAI's wire, retries, cancelling, errors."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

from rolling_chat.messages import Ending, Json, Message, Usage
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import (
    Delta,
    ErrorKind,
    Finished,
    ProviderError,
    ReasoningDelta,
    Request,
    Retrying,
    TextDelta,
    ToolCallDelta,
)
from rolling_chat.providers.retries import RetryPolicy
from tests.providers.conftest import MakeProvider
from tests.support.servers import Break, Call, Drop, Fail, Hang, OpenAIServer, Reply

MODEL = "openai/scripted"
PROMPT = (Message("system", "be brief"), Message("user", "hi"))
TOOL: dict[str, Json] = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}


def _request(server: OpenAIServer, *messages: Message, model: str = MODEL, **fields: Json) -> Request:
    return Request(model, messages or PROMPT, api_base=server.api_base, **fields)


async def _read(provider: ModelProvider, request: Request) -> list[Delta]:
    return [delta async for delta in provider.stream(request)]


async def _fail(provider: ModelProvider, request: Request) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await _read(provider, request)
    return caught.value


def _finished(deltas: list[Delta]) -> Finished:
    assert isinstance(deltas[-1], Finished)
    return deltas[-1]


async def test_a_reply_streams_and_its_usage_is_the_servers(provider: ModelProvider) -> None:
    async with OpenAIServer([Reply("one two three", reasoning="let me think")]) as server:
        deltas = await _read(provider, _request(server))

    finished = _finished(deltas)
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["one ", "two ", "three"]
    assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)) == "let me think "
    assert finished.message.content == "one two three"
    assert finished.message.extras == {"reasoning_content": "let me think "}
    assert finished.message.made_by is not None
    assert finished.message.made_by.model == MODEL
    assert finished.usage.input_tokens == server.requests[0].tokens
    assert finished.usage.cost is None


async def test_a_call_with_tools_works_in_a_base_install(provider: ModelProvider) -> None:
    calls = (Call("read_file", '{"path": "a"}', "call_a"), Call("read_file", '{"path": "b"}', "call_b"))
    async with OpenAIServer([Reply("Reading.", calls), Reply("done")]) as server:
        deltas = await _read(provider, _request(server, tools=(TOOL,)))
        reply = _finished(deltas).message
        results = tuple(Message("tool", "x", tool_call_id=call.id) for call in reply.tool_calls)
        await _read(provider, _request(server, *PROMPT, reply, *results, tools=(TOOL,), tool_choice="none"))

    assert [(call.id, call.name, json.loads(call.arguments)) for call in reply.tool_calls] == [
        ("call_a", "read_file", {"path": "a"}),
        ("call_b", "read_file", {"path": "b"}),
    ]
    fragments = [delta for delta in deltas if isinstance(delta, ToolCallDelta)]
    assert {delta.index for delta in fragments} == {0, 1}
    assert server.requests[0].body["tools"] == [TOOL]
    assert server.requests[1].body["tool_choice"] == "none"
    assert [message["role"] for message in server.requests[1].messages][2:] == ["assistant", "tool", "tool"]


async def test_a_server_without_usage_leaves_it_unknown(provider: ModelProvider) -> None:
    async with OpenAIServer([Reply("hello", usage=False)]) as server:
        assert _finished(await _read(provider, _request(server))).usage == Usage()


async def test_a_reply_cut_at_its_limit_says_so(provider: ModelProvider) -> None:
    async with OpenAIServer([Reply("half a", finish_reason="length")]) as server:
        finished = _finished(await _read(provider, _request(server, max_tokens=2)))

    assert finished.message.ending is Ending.LENGTH
    assert server.requests[0].body["max_tokens"] == 2


async def test_an_output_limit_is_sent_only_when_there_is_one(provider: ModelProvider) -> None:
    async with OpenAIServer() as server:
        await _read(provider, _request(server))
    assert not {"max_tokens", "max_completion_tokens"} & set(server.requests[0].body)


@pytest.mark.parametrize(("effort", "sent"), [("high", {"reasoning_effort": "high"}), ("", {})])
async def test_an_effort_is_sent_to_a_model_that_reasons(
    provider: ModelProvider, effort: str, sent: dict[str, str]
) -> None:
    async with OpenAIServer([Reply("hi")]) as server:
        await _read(provider, _request(server, model="openai/gpt-5", effort=effort))
    body = server.requests[0].body
    assert {name: value for name, value in body.items() if name == "reasoning_effort"} == sent


async def test_what_is_sent_is_the_wire_form(provider: ModelProvider) -> None:
    async with OpenAIServer() as server:
        request = _request(server, Message("assistant", "welcome"), *PROMPT)
        await _read(provider, request)
    assert server.requests[0].messages == provider.wire_form(request)


async def test_temporary_failures_are_retried_visibly(provider: ModelProvider) -> None:
    rate_limit = Fail(429, {"error": {"message": "Rate limit reached"}}, {"retry-after": "0.01"})
    async with OpenAIServer([rate_limit, Fail(503, "busy"), Drop(), Reply("at last")]) as server:
        deltas = await _read(provider, _request(server))

    waits = [delta for delta in deltas if isinstance(delta, Retrying)]
    assert [wait.attempt for wait in waits] == [1, 2, 3]
    assert all(0 < wait.left <= 300 for wait in waits)
    assert waits[0].delay == 0.01
    assert "slow down" in waits[0].reason
    assert len(server.requests) == 4
    assert _finished(deltas).message.content == "at last"


async def test_temporary_failures_are_retried_for_five_minutes_at_most(make_provider: MakeProvider) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    provider = make_provider(retries=RetryPolicy(jitter=lambda: 1.0), sleep=sleep, clock=lambda: 0.0)
    async with OpenAIServer(lambda _body: Fail(500, "broken")) as server:
        error = await _fail(provider, _request(server))

    assert error.kind is ErrorKind.OVERLOADED
    assert sum(waits) == 300.0
    assert len(server.requests) == len(waits) + 1
    assert max(waits) == 20.0


async def test_the_time_that_requests_take_counts_too(make_provider: MakeProvider) -> None:
    times = iter([0.0, 299.0, 301.0])
    provider = make_provider(retries=RetryPolicy(base=0.001), clock=lambda: next(times))
    async with OpenAIServer(lambda _body: Fail(500, "broken")) as server:
        await _fail(provider, _request(server))
    assert len(server.requests) == 2


@pytest.mark.parametrize("fail", [Fail(503, "busy"), Fail(429, "slow down"), Drop()])
async def test_with_no_time_for_retries_there_is_one_attempt(
    make_provider: MakeProvider, fail: Fail | Drop
) -> None:
    provider = make_provider(retries=RetryPolicy(minutes=0))
    async with OpenAIServer([fail, Reply("at last")]) as server:
        await _fail(provider, _request(server))
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_permanent_failure_is_not_retried(provider: ModelProvider, status: int) -> None:
    async with OpenAIServer([Fail(status, "no"), Reply("at last")]) as server:
        await _fail(provider, _request(server))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "address", ["https://127.0.0.1:{port}/v1", "http://no-such-host.invalid:{port}/v1"], ids=["TLS", "name"]
)
async def test_a_wrong_address_fails_at_once(make_provider: MakeProvider, address: str) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with OpenAIServer() as server:
        request = Request(MODEL, PROMPT, api_base=address.format(port=server.port))
        error = await _fail(make_provider(sleep=sleep), request)
    assert (error.kind, waits) == (ErrorKind.NO_NETWORK, [])


async def test_waiting_for_another_try_can_be_cancelled(make_provider: MakeProvider) -> None:
    waiting = asyncio.Event()

    async def sleep(_seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    provider = make_provider(sleep=sleep)
    async with OpenAIServer([Fail(503, "busy")]) as server:
        task = asyncio.create_task(_read(provider, _request(server)))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(server.requests) == 1


async def test_nothing_is_sent_again_once_a_delta_has_come(provider: ModelProvider) -> None:
    seen: list[Delta] = []

    async def read_into_seen(request: Request) -> None:
        async for delta in provider.stream(request):
            seen.append(delta)  # noqa: PERF401  # what came before the break is wanted

    async with OpenAIServer([Break(Reply("one two three four"), pieces=2)]) as server:
        with pytest.raises(ProviderError) as caught:
            await read_into_seen(_request(server))

    assert caught.value.kind is ErrorKind.INTERRUPTED
    assert [delta.text for delta in seen if isinstance(delta, TextDelta)] == ["one ", "two "]
    assert len(server.requests) == 1


async def test_cancelling_closes_the_connection(provider: ModelProvider) -> None:
    async with OpenAIServer([Hang(Reply("one two"))]) as server:
        task = asyncio.create_task(_read(provider, _request(server)))
        await server.wait_hanging()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await server.wait_disconnected()


async def test_closing_the_iterator_closes_the_connection(provider: ModelProvider) -> None:
    async with OpenAIServer([Hang(Reply("one two"))]) as server:
        stream = provider.stream(_request(server))
        assert await anext(stream) == TextDelta("one ")
        await stream.aclose()
        await server.wait_disconnected()


async def test_a_prompt_that_is_too_long_carries_the_servers_numbers(provider: ModelProvider) -> None:
    async with OpenAIServer(window=100) as server:
        error = await _fail(provider, _request(server, Message("user", "word " * 500)))

    assert (error.kind, error.limit, error.requested) == (ErrorKind.TOO_LONG, 100, server.requests[0].tokens)
    assert len(server.requests) == 1


async def test_a_wrong_key_is_never_shown(make_provider: MakeProvider) -> None:
    key = "sk-proj-wrong-0123456789abcdef"
    provider = make_provider({"OPENAI_API_KEY": key})
    async with OpenAIServer(key="sk-right") as server:
        error = await _fail(provider, _request(server))

    assert error.kind is ErrorKind.BAD_KEY
    assert "OPENAI_API_KEY" in str(error)
    assert key not in str(error) + error.detail
    assert server.requests[0].headers["Authorization"] == f"Bearer {key}"


async def test_a_server_of_ones_own_needs_no_key(provider: ModelProvider) -> None:
    async with OpenAIServer() as server:
        await _read(provider, _request(server))
    assert server.requests[0].headers["Authorization"] == "Bearer no-key-needed"


async def test_a_server_of_ones_own_that_is_not_there_is_named_at_once(make_provider: MakeProvider) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with OpenAIServer() as server:
        request = _request(server)
    error = await _fail(make_provider(sleep=sleep), request)

    assert waits == []

    assert error.kind is ErrorKind.NO_NETWORK
    assert f"127.0.0.1:{server.port}" in str(error)


async def test_a_session_key_goes_to_openai_alone(provider: ModelProvider) -> None:
    async with OpenAIServer() as server:
        await _read(provider, _request(server, session_id="s1"))
    assert "prompt_cache_key" not in server.requests[0].body
    to_openai = Request("openai/gpt-5.4", PROMPT, session_id="s1")
    assert provider._arguments(to_openai)["prompt_cache_key"] == "s1"


NONSENSE = ("", "<html>not a model</html>", "data: {broken json\n\n", "\x00\xff" * 1000)


@pytest.mark.parametrize("answer", NONSENSE, ids=["empty", "html", "broken json", "binary"])
async def test_nonsense_from_a_server_is_an_error_on_one_line(provider: ModelProvider, answer: str) -> None:
    async with OpenAIServer([Fail(200, answer)]) as server:
        error = await _fail(provider, _request(server))
    assert str(error).isprintable()
    assert f"127.0.0.1:{server.port}" in str(error)


async def test_a_model_that_repeats_itself_is_not_cut_off(provider: ModelProvider) -> None:
    async with OpenAIServer([Reply("haha " * 300)]) as server:
        assert _finished(await _read(provider, _request(server))).message.content == "haha " * 300


async def test_requests_may_run_side_by_side(provider: ModelProvider) -> None:
    async with OpenAIServer(lambda body: Reply(body["messages"][-1]["content"])) as server:
        replies = await asyncio.gather(
            *(_read(provider, _request(server, Message("user", f"n{number}"))) for number in range(8))
        )
    assert [_finished(deltas).message.content for deltas in replies] == [f"n{number}" for number in range(8)]


async def test_a_404_says_the_servers_words_its_address_and_what_it_has(make_provider: MakeProvider) -> None:
    provider = make_provider({"OPENAI_API_KEY": "sk-0123456789"})
    refusal = Fail(404, {"error": {"message": "The model `scripted` is not here"}})
    async with OpenAIServer([refusal], models=("one", "tw\x1b[2Jo")) as server:
        error = await _fail(provider, _request(server))

    assert error.kind is ErrorKind.MODEL_UNKNOWN
    assert str(error) == (
        f'Unknown model "{MODEL}". {server.api_base} says: The model `scripted` is not here. '
        "It has: one, tw␛[2Jo."
    )


async def test_a_404_of_a_server_that_lists_nothing_says_its_words(provider: ModelProvider) -> None:
    async with OpenAIServer([Fail(404, "no such page")]) as server:
        error = await _fail(provider, _request(server))
    assert str(error) == f'Unknown model "{MODEL}". {server.api_base} says: no such page'
