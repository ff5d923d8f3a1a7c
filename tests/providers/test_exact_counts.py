"""Token counts by providers: requested in their own format, only where the request goes, and checked."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from rolling_chat.messages import Json, Message, ToolCall
from rolling_chat.providers import native_requests
from rolling_chat.providers.addresses import is_private_address, token_counter
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import ProviderError, Request
from tests.providers.conftest import MakeProvider
from tests.support.json_server import JsonServer, json_server
from tests.support.patience import PATIENCE_SECONDS as HANG_LIMIT
from tests.support.servers import AnthropicServer

KEYS = {"ANTHROPIC_API_KEY": "sk-ant-right", "GEMINI_API_KEY": "AIza-right", "OPENAI_API_KEY": "sk-right"}
TOOL: dict[str, Json] = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}
CALLS = (ToolCall("c1", "read_file", '{"path": "a"}'), ToolCall("c2", "read_file", '{"path": "b"}'))
MESSAGES = (
    Message("system", "Be brief."),
    Message("user", "Read them."),
    Message("assistant", "I read.", tool_calls=CALLS),
    Message("tool", "text of a", tool_call_id="c1"),
    Message("tool", "text of b", tool_call_id="c2"),
    Message("user", "And?"),
)
WORD_ONLY = {"model": "tiny", "messages": [{"role": "user", "content": "Hello"}]}
INPUT_TOKENS, APPLY_TEMPLATE, TOKENIZE = "/v1/chat/completions/input_tokens", "/apply-template", "/tokenize"


def _request(model: str, api_base: str | None, **fields: Any) -> Request:
    return Request(model, MESSAGES, (TOOL,), api_base=api_base, **fields)


def _own(server: JsonServer) -> Request:
    return _request("openai/tiny", f"{server.address}/v1")


def _paths(server: JsonServer) -> list[str]:
    return [path for path, _key, _body in server.asked]


# -- what is asked, and where


async def test_claude_counts_exactly_the_body_that_is_sent(make_provider: MakeProvider) -> None:
    provider = make_provider(KEYS)
    async with AnthropicServer(key="sk-ant-right") as server:
        request = _request(
            "anthropic/claude-sonnet-4-5", server.api_base, max_tokens=8_000, effort="high",
            stable_system_chars=5, previous_length=2,
        )  # fmt: skip
        counted = await provider.count_tokens(request, HANG_LIMIT)
        async for _ in provider.stream(request):
            pass
    (question,), (sent,) = server.counted, server.requests
    assert counted == sent.tokens > 0
    assert {**question.body, "max_tokens": 8_000, "stream": True} == sent.body
    for header in ("x-api-key", "anthropic-version"):
        assert question.headers[header] == sent.headers[header]


async def test_claude_counts_without_litellm(
    make_provider: MakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, asked = make_provider(KEYS), list[str]()

    async def load() -> None:
        asked.append("litellm")

    monkeypatch.setattr(provider._litellm_route, "load", load)
    monkeypatch.setattr(native_requests, "_litellm_request", asked.append)
    async with AnthropicServer(key="sk-ant-right") as server:
        request = _request("anthropic/claude-sonnet-4-5", server.api_base)
        assert await provider.count_tokens(request, HANG_LIMIT) == server.counted[0].tokens
    assert asked == []


async def test_what_only_litellm_converts_is_counted_through_litellm(make_provider: MakeProvider) -> None:
    provider = make_provider(KEYS)
    tool = {**TOOL, "function": {**TOOL["function"], "name": "server.read"}}
    async with AnthropicServer(key="sk-ant-right") as server:
        request = Request("anthropic/claude-sonnet-4-5", MESSAGES, (tool,), api_base=server.api_base)
        assert await provider.count_tokens(request, HANG_LIMIT) == server.counted[0].tokens
    (question,) = server.counted
    assert question.body["tools"][0]["name"] == "server_read"


@pytest.mark.parametrize("model", ["gemini/gemini-2.5-pro", "gemini/gemini-3-pro-preview"])
async def test_gemini_counts_exactly_the_body_that_is_sent(make_provider: MakeProvider, model: str) -> None:
    name = model.removeprefix("gemini/")
    provider = make_provider(KEYS)
    with json_server({f"/models/{name}:countTokens": {"totalTokens": 57}}) as server:
        request = _request(model, server.address, effort="high")
        assert await provider.count_tokens(request, HANG_LIMIT) == 57
        with pytest.raises(ProviderError):  # it only counts
            async for _ in provider.stream(request):
                pass
    (_, _, question), (path, _, sent) = server.asked[:2]
    assert path.startswith(f"/models/{name}:streamGenerateContent")
    assert json.loads(question) == {"generateContentRequest": {"model": f"models/{name}", **json.loads(sent)}}


async def test_llama_cpp_counts_the_chat_request_itself(make_provider: MakeProvider) -> None:
    provider = make_provider(KEYS)
    with json_server({INPUT_TOKENS: {"input_tokens": 31}}) as server:
        assert await provider.count_tokens(_own(server), HANG_LIMIT) == 31
    (_, _, word), (_, key, question) = server.asked
    assert json.loads(word) == WORD_ONLY
    body = json.loads(question)
    assert key == "Bearer sk-right"
    assert body["model"] == "tiny"
    assert body["tools"] == [TOOL]
    assert [message["role"] for message in body["messages"]] == [message.role for message in MESSAGES]


async def test_an_older_llama_cpp_counts_the_text_of_its_template(make_provider: MakeProvider) -> None:
    provider = make_provider()
    answers = {APPLY_TEMPLATE: {"prompt": "<|im_start|>Hello"}, TOKENIZE: {"tokens": [1, 2, 3]}}
    with json_server(answers) as server:
        assert await provider.count_tokens(_own(server), HANG_LIMIT) == 3
    assert _paths(server)[-2:] == [APPLY_TEMPLATE, TOKENIZE]
    assert json.loads(server.asked[-1][2]) == {
        "content": "<|im_start|>Hello",
        "add_special": True,
        "parse_special": True,
    }
    assert json.loads(server.asked[-2][2])["tools"] == [TOOL]


@pytest.mark.parametrize("model", ["openai/tiny", "hosted_vllm/tiny"])
async def test_vllm_counts_messages_and_tools(make_provider: MakeProvider, model: str) -> None:
    provider = make_provider()
    answer = {"count": 44, "max_model_len": 4_096, "tokens": list(range(44))}
    with json_server({TOKENIZE: answer}) as server:
        assert await provider.count_tokens(_request(model, f"{server.address}/v1"), HANG_LIMIT) == 44
    path, _, question = server.asked[-1]
    assert path == TOKENIZE
    assert set(json.loads(question)) == {"model", "messages", "tools"}


async def test_what_was_counted_is_not_asked_again(make_provider: MakeProvider) -> None:
    provider = make_provider()
    with json_server({INPUT_TOKENS: {"input_tokens": 31}}) as server:
        counts = [await provider.count_tokens(_own(server), HANG_LIMIT) for _ in range(3)]
    assert counts == [31, 31, 31]
    assert len(server.asked) == 2  # the word that looks for the endpoint, and the request


@pytest.mark.parametrize(
    ("model", "address", "who"),
    [
        ("anthropic/claude-sonnet-4-5", None, "anthropic"),
        ("claude-sonnet-4-5", "http://10.0.0.5:4000", "anthropic"),
        ("gemini/gemini-2.5-pro", None, "gemini"),
        ("openai/tiny", "http://127.0.0.1:8080/v1", "server"),
        ("hosted_vllm/tiny", "https://gpu.example.com/v1", "server"),
        ("openai/gpt-4o", None, ""),
        ("openai/gpt-4o", "https://api.openai.com/v1", ""),
        ("openai/llama", "https://api.together.xyz/v1", ""),
        ("openrouter/anthropic/claude-sonnet-4-5", None, ""),
        ("bedrock/anthropic.claude-sonnet-4-5", None, ""),
        ("ollama/qwen3", "http://127.0.0.1:11434", ""),
        ("demo/offline", None, ""),
    ],
)
def test_only_servers_that_count_are_asked(model: str, address: str | None, who: str) -> None:
    assert token_counter(model, address) == who


@pytest.mark.parametrize(
    ("address", "near"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://localhost:8000", True),
        ("http://[::1]:8000/v1", True),
        ("http://192.168.0.7:8000/v1", True),
        ("https://8.8.8.8/v1", False),
        ("https://gpu.example.com/v1", False),
        ("http://[broken", False),
        ("", False),
        (None, False),
    ],
)
def test_an_address_is_private_on_this_machine_and_in_a_private_network(
    address: str | None, near: bool
) -> None:
    assert is_private_address(address) is near


async def test_no_question_bypasses_a_proxy(make_provider: MakeProvider) -> None:
    provider = make_provider({**KEYS, "HTTPS_PROXY": "http://proxy.example:3128"})
    assert await provider.count_tokens(_request("anthropic/claude-sonnet-4-5", None), HANG_LIMIT) == 0
    with json_server({INPUT_TOKENS: {"input_tokens": 31}}) as server:  # but this machine needs none
        assert await provider.count_tokens(_own(server), HANG_LIMIT) == 31


async def test_the_demo_is_never_asked(provider: ModelProvider) -> None:
    assert await provider.count_tokens(_request("demo/offline", None), HANG_LIMIT) == 0


# -- what is no answer

ODD = [
    500, 401, 429, b"", b"{", b"[" * 100_000, b"null", [], 7, "31", {}, {"input_tokens": -5},
    {"input_tokens": 0}, {"input_tokens": "31"}, {"input_tokens": 31.5}, {"input_tokens": True},
    {"input_tokens": None}, {"input_tokens": 10**30},
]  # fmt: skip


@pytest.mark.parametrize("answer", ODD, ids=lambda answer: repr(answer)[:20])
async def test_an_invalid_answer_is_no_count(make_provider: MakeProvider, answer: Any) -> None:
    provider = make_provider(KEYS)
    with json_server({INPUT_TOKENS: answer, "/v1/messages/count_tokens": answer}) as server:
        for request in (_own(server), _request("anthropic/claude-sonnet-4-5", server.address, max_tokens=9)):
            counts = [await provider.count_tokens(request, HANG_LIMIT) for _ in range(4)]
            assert counts == [0, 0, 0, 0]
        # after two failures, or once there is no endpoint, nothing is asked any more
        asked = _paths(server)
    assert asked.count(INPUT_TOKENS) <= 2
    assert asked.count("/v1/messages/count_tokens") <= 2


async def test_a_missing_endpoint_is_searched_for_once(make_provider: MakeProvider) -> None:
    provider = make_provider(KEYS)
    with json_server({}) as server:
        for _ in range(3):
            assert await provider.count_tokens(_own(server), HANG_LIMIT) == 0
        claude = _request("anthropic/claude-sonnet-4-5", server.address, max_tokens=9)
        for _ in range(3):
            assert await provider.count_tokens(claude, HANG_LIMIT) == 0
    assert _paths(server) == [INPUT_TOKENS, TOKENIZE, APPLY_TEMPLATE, "/v1/messages/count_tokens"]
    # and what looked for it said nothing of the conversation
    assert all(json.loads(body) == WORD_ONLY for _, _, body in server.asked[:3])


async def test_no_redirect_is_followed(make_provider: MakeProvider) -> None:
    provider = make_provider(KEYS)
    with json_server({INPUT_TOKENS: {"input_tokens": 31}}) as elsewhere:
        head = f"HTTP/1.1 307 Temporary Redirect\r\nlocation: {elsewhere.address}{INPUT_TOKENS}\r\n"
        with _raw_server(f"{head}content-length: 0\r\n\r\n".encode()) as address:
            assert await provider.count_tokens(_request("openai/tiny", f"{address}/v1"), HANG_LIMIT) == 0
            claude = _request("anthropic/claude-sonnet-4-5", address, max_tokens=9)
            assert await provider.count_tokens(claude, HANG_LIMIT) == 0
    assert elsewhere.asked == []


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{", b"\x00" * 100],
    ids=["cut", "short", "no http"],
)
async def test_a_connection_that_is_cut_is_no_count(make_provider: MakeProvider, answer: bytes) -> None:
    with _raw_server(answer) as address:
        assert await make_provider().count_tokens(_request("openai/tiny", f"{address}/v1"), HANG_LIMIT) == 0


async def test_a_huge_answer_is_not_read_to_its_end(make_provider: MakeProvider) -> None:
    huge = b'{"input_tokens": 31, "more": "' + b"x" * 20_000_000
    with _raw_server(b"HTTP/1.1 200 OK\r\n\r\n" + huge) as address:
        assert await make_provider().count_tokens(_request("openai/tiny", f"{address}/v1"), HANG_LIMIT) == 0


async def test_a_slow_server_is_abandoned_after_the_timeout(
    make_provider: MakeProvider,
) -> None:
    loop, held = asyncio.get_running_loop(), asyncio.Event()
    with _raw_server(None, lambda: loop.call_soon_threadsafe(held.set)) as address:
        request = _request("openai/tiny", f"{address}/v1")
        assert await make_provider().count_tokens(request, 0.2) == 0
        held.clear()
        asking = asyncio.create_task(make_provider().count_tokens(request, 10 * HANG_LIMIT))
        await asyncio.wait_for(held.wait(), HANG_LIMIT)  # the event loop goes on meanwhile
        assert not asking.done()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


@contextmanager
def _raw_server(answer: bytes | None, on_held: Callable[[], object] = object) -> Iterator[str]:
    """Answers every connection with the same bytes and closes it; with None it never answers.

    `on_held` is called for each connection that is not answered, in another thread.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            if answer is None:
                held.append(connection)
                on_held()
                continue
            with closing(connection):
                try:
                    connection.recv(65_536)
                    connection.sendall(answer)
                except OSError:
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(HANG_LIMIT)
        for connection in held:
            connection.close()
