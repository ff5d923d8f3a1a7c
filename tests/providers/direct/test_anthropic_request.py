"""Requests sent to Anthropic without litellm equal litellm's byte by byte."""

from __future__ import annotations

import asyncio
import copy
import importlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.messages import Json, MadeBy, Message, ToolCall
from rolling_chat.providers.direct import anthropic_request
from rolling_chat.providers.direct.anthropic_request import anthropic_body, anthropic_headers, anthropic_url
from rolling_chat.providers.litellm_loading import load_litellm
from rolling_chat.providers.model_provider import ModelProvider
from rolling_chat.providers.protocol import Request
from rolling_chat.settings.catalog import load_catalog
from rolling_chat.settings.schema import EFFORTS

CATALOG = load_catalog()
PROVIDER = ModelProvider(environ={"ANTHROPIC_API_KEY": "sk-ant-key"}, catalog=CATALOG)
CLAUDES = tuple(name for name in CATALOG.names() if CATALOG.lookup(name).provider == "anthropic")  # type: ignore[union-attr]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
Sent = Callable[[dict[str, Any]], httpx.Request | None]


@pytest.fixture(scope="module")
def sent() -> Iterator[Sent]:
    """Let litellm send a request with some arguments, and return it; None where it refuses."""
    litellm = load_litellm(None)
    caught: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        caught.append(request)
        return httpx.Response(400, json={"type": "error", "error": {"type": "invalid_request_error"}})

    client = importlib.import_module("litellm.llms.custom_httpx.http_handler").AsyncHTTPHandler()

    async def ask(arguments: dict[str, Any]) -> None:
        client.client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        await litellm.acompletion(
            **arguments, stream=True, stream_options={"include_usage": True}, num_retries=0, max_retries=0,
            drop_params=True, client=client,
        )  # fmt: skip

    with asyncio.Runner() as runner:

        def send(arguments: dict[str, Any]) -> httpx.Request | None:
            caught.clear()
            with pytest.raises(Exception):  # noqa: B017, PT011  # litellm raises nearly anything
                runner.run(ask(copy.deepcopy(arguments)))
            return caught[0] if caught else None

        yield send


def arguments(request: Request) -> dict[str, Any]:
    return PROVIDER._arguments(request)


def body_of(made: dict[str, Any]) -> bytes | None:
    info = CATALOG.lookup(made["model"])
    body = anthropic_body(made, output_limit=info.max_output_tokens if info else 0)
    return None if body is None else json.dumps(body).encode()


TEXTS = st.one_of(
    st.sampled_from(["", " ", "\n\n", "hi", "trailing  \n", "ünïcode 🦜\u2028", '{"a": 1}', "a" * 300]),
    st.text(max_size=12),
)
TEXT_PARTS = TEXTS.map(lambda text: {"type": "text", "text": text})
PICTURES = st.sampled_from(
    [
        PICTURE,
        {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "image_url", "image_url": "data:image/webp;base64,UklGRg=="},
    ]
)
CONTENTS = st.one_of(TEXTS, st.lists(TEXT_PARTS | PICTURES, max_size=3).map(tuple))
IDS = st.sampled_from(["", "toolu_1", "toolu_2", "call 3", "srvtoolu_4", "ünïcode", "x" * 70])
CALLS = st.builds(
    ToolCall,
    IDS,
    st.sampled_from(["read_file", "run", "no such tool!", ""]),
    st.one_of(
        st.sampled_from(
            ["", "{}", '{"a": {"b": [1, 2.5, null, true]}}', '{"a": ', "[1]", '{"a": NaN}', "text"]
        ),
        st.dictionaries(st.text(max_size=3), TEXTS | st.floats(allow_nan=False), max_size=3).map(json.dumps),
    ),
)
BLOCKS = st.sampled_from(
    [
        {"type": "thinking", "thinking": "let me see", "signature": "c2lnbmVk"},
        {"type": "thinking", "thinking": "", "signature": "c2lnbmVk"},
        {"type": "thinking", "thinking": "unsigned", "signature": ""},
        {"type": "thinking", "thinking": "another's", "signature": "litellm_encrypted_reasoning:x"},
        {"type": "redacted_thinking", "data": "ZW5j"},
    ]
)
SCHEMAS = st.sampled_from(
    [
        {"type": "object", "properties": {}},
        {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "ü"}},
            "required": ["path"],
        },
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Args",
            "properties": {
                "a": {"$ref": "#/$defs/A"},
                "b": {"anyOf": [{"type": "null"}, {"enum": [1, "x"]}]},
            },
            "$defs": {"A": {"type": "object", "properties": {"definitions": {"type": "integer"}}}},
            "additionalProperties": False,
        },
        {"type": "string"},
        {"oneOf": [{"type": "object"}], "patternProperties": {}},
        {},
    ]
)


@st.composite
def tools(draw: st.DrawFn) -> tuple[dict[str, Json], ...]:
    names = draw(
        st.lists(st.sampled_from(["read_file", "run", "mcp__a__b-c", "x" * 64]), max_size=3, unique=True)
    )
    made = []
    for name in names:
        function: dict[str, Json] = {"name": name}
        if draw(st.booleans()):
            function["description"] = draw(TEXTS)
        if draw(st.booleans()):
            function["parameters"] = draw(SCHEMAS)
        made.append({"type": "function", "function": function})
    return tuple(made)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    prefix = draw(st.sampled_from(["anthropic/", ""]))
    model = prefix + draw(st.sampled_from(CLAUDES))

    def message() -> Message:
        match draw(st.sampled_from(["user", "user", "assistant", "assistant", "tool", "tool", "system"])):
            case "user":
                return Message("user", draw(CONTENTS), name=draw(st.sampled_from([None, "Ann"])))
            case "tool":
                return Message("tool", draw(CONTENTS), tool_call_id=draw(IDS))
            case "system":
                return Message("system", draw(TEXTS))
        blocks, calls = draw(st.lists(BLOCKS, max_size=2)), draw(st.lists(CALLS, max_size=3))
        extras = (
            {"thinking_blocks": blocks, "reasoning_content": "let me see", "other": 1} if blocks else None
        )
        content = draw(TEXTS | st.lists(TEXT_PARTS, max_size=2).map(tuple))
        return Message("assistant", content, tuple(calls), extras=extras, made_by=MadeBy("anthropic", model))

    messages = tuple(message() for _ in range(draw(st.integers(1, 8))))
    return Request(
        model,
        messages,
        tools=draw(tools()),
        tool_choice=draw(st.sampled_from(["auto", "none"])),
        max_tokens=draw(st.sampled_from([None, 1, 1024, 64_000])),
        previous_length=draw(st.integers(0, 8)),
        stable_system_chars=draw(st.integers(0, 8)),
        effort=draw(st.sampled_from(EFFORTS)),
        cache_ttl=draw(st.sampled_from(["5m", "1h"])),
    )


@given(requests())
def test_the_body_is_the_one_that_litellm_sends(sent: Sent, request: Request) -> None:
    made = arguments(request)
    theirs = sent(made)
    assert body_of(made) == (None if theirs is None else theirs.content)


@pytest.mark.parametrize("model", CLAUDES)
def test_every_claude_of_the_catalog_thinks_as_litellm_lets_it(sent: Sent, model: str) -> None:
    for effort in filter(None, EFFORTS):
        made = arguments(Request(f"anthropic/{model}", (Message("user", "hi"),), effort=effort))
        theirs = sent(made)
        assert body_of(made) == (None if theirs is None else theirs.content), effort


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 2),
    st.sampled_from(
        ["", "text", "user", "tool", "system", "function", "data:image/png;base64,", "data:,", "x y"]
    ),
    st.just([]),
    st.just({}),
    st.just([{"type": "text", "text": "hi"}]),
    st.just({"type": "text", "text": " "}),
    st.just({"type": "file", "file": {"file_id": "f"}}),
    st.just({"type": "ephemeral"}),
)
KEYS = st.sampled_from(
    ["type", "text", "role", "content", "cache_control", "strict", "name", "definitions", "id", "n", "user"]
)


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments with another value in one or two places, or a key more or less."""
    made = copy.deepcopy(arguments(draw(requests())))
    for _ in range(draw(st.integers(1, 2))):
        holder: Any = made
        for _ in range(draw(st.integers(0, 5))):
            inner = [value for value in _values(holder) if isinstance(value, dict | list) and value]
            if not inner:
                break
            holder = draw(st.sampled_from(inner))
        key = draw(st.sampled_from(list(range(len(holder))))) if isinstance(holder, list) else None
        if key is None:
            key = draw(KEYS | st.sampled_from(list(holder)))
        if draw(st.booleans()) or key not in _keys(holder):
            holder[key] = copy.deepcopy(draw(VALUES))
        else:
            del holder[key]
            if not holder:
                break
    return made


def _values(holder: Any) -> list[Any]:
    return list(holder.values()) if isinstance(holder, dict) else holder


def _keys(holder: Any) -> list[Any]:
    return list(holder) if isinstance(holder, dict) else list(range(len(holder)))


@given(broken())
def test_a_request_that_is_not_understood_has_no_body(sent: Sent, made: dict[str, Any]) -> None:
    if not isinstance(made.get("model"), str):
        made["model"] = "anthropic/claude-sonnet-4-5"
    before = copy.deepcopy(made)
    ours = body_of(made)
    assert made == before
    if ours is not None:
        theirs = sent(made)
        assert theirs is not None
        assert ours == theirs.content


@pytest.mark.parametrize("key", ["sk-ant-key", "sk-ant-oat01-subscription", "another"])
@pytest.mark.parametrize("base", [None, "https://proxy.example", "https://proxy.example/v1/messages"])
def test_the_headers_and_the_address_are_those_that_litellm_sends(
    sent: Sent, key: str, base: str | None
) -> None:
    made = {
        "model": "anthropic/claude-sonnet-4-5",
        "messages": [{"role": "user", "content": "hi"}],
        "api_key": key,
    }
    made |= {} if base is None else {"api_base": base}
    theirs = sent(made)
    assert theirs is not None
    its_clients = {"host", "accept-encoding", "connection", "user-agent", "content-length"}
    assert anthropic_headers(made) == {
        name: value for name, value in theirs.headers.items() if name not in its_clients
    }
    assert anthropic_url(made) == str(theirs.url)


@pytest.mark.parametrize(
    "changes",
    [
        {"api_key": ""},
        {"api_key": ["sk-ant-key"]},
        {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": False}]},
        {"model": "anthropic/claude-2"},
        {"model": "anthropic/invoke/claude-opus-5"},
        {"model": "claude-of-tomorrow"},
        {"model": "claude-opus-5", "api_base": "https://api.groq.com/openai/v1"},
        {"model": "anthropic/another", "reasoning_effort": "high"},
        {"reasoning_effort": "hard"},
        {"tool_choice": {"type": "function", "function": {"name": "run"}}},
        {"temperature": 1},
        {"messages": []},
        {"messages": [{"role": "system", "content": "alone"}]},
        {"messages": [{"role": "user", "content": "hi"}, {"role": "system", "content": "later"}]},
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]},
        {"messages": [{"role": "user", "content": [{**PICTURE, "image_url": {"url": "http://a/b.png"}}]}]},
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        {"tools": [{"type": "function", "function": {"name": "a.b"}}]},
        {"tools": [{"type": "function", "function": {"name": "a", "parameters": {"definitions": {}}}}]},
    ],
    ids=str,
)
def test_what_litellm_looks_up_or_converts_specially_is_sent_by_litellm(changes: dict[str, Any]) -> None:
    made = {
        "model": "anthropic/claude-sonnet-4-5",
        "messages": [{"role": "user", "content": "hi"}],
        "api_key": "sk-ant-key",
        "max_tokens": 9,
    }
    assert anthropic_body(made) is not None
    assert anthropic_body(made | changes) is None


def test_without_an_output_limit_the_models_must_be_known() -> None:
    made = {"model": "anthropic/mine", "messages": [{"role": "user", "content": "hi"}], "api_key": "k"}
    assert anthropic_body(made) is None
    assert anthropic_body(made, output_limit=7) == anthropic_body(made | {"max_tokens": 7})


def test_every_claude_of_the_catalog_is_known() -> None:
    assert set(CLAUDES) <= anthropic_request._BUDGETED | anthropic_request._ADAPTIVE
