"""The direct way sends what litellm sends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rolling_chat.messages import Json, Message, ToolCall
from rolling_chat.providers.protocol import Request
from rolling_chat.tools.registry import all_tools
from tests.providers.direct.conftest import KEYS, BothWays, is_direct

# two requests each, one by litellm: fewer examples than elsewhere in the fast tier
_FEW = settings(
    settings.get_profile(settings.get_current_profile_name()),
    max_examples=max(15, settings().max_examples // 8),
    suppress_health_check=list(HealthCheck),
)
ANSWER = (
    b'data: {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", '
    b'"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
MODELS = [
    "openai/scripted", "openai/gpt-4o", "gpt-4o-mini", "custom_openai/m", "litellm_proxy/m", "hosted_vllm/m",
    "lm_studio/m", "llamafile/m", "groq/openai/gpt-oss-120b", "openrouter/openrouter/auto",
    "deepseek/deepseek-chat", "dashscope/qwen-max", "zai/glm-5.3", "together_ai/m", "novita/m",
]  # fmt: skip
_TEXTS = st.sampled_from(["", "hi", "Grüße, 世界 🌍", "a\nb\r\n\tc", '{"x": 1}', "x" * 300, "\x00\u2028"])
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def _tool(name: str, parameters: Json) -> dict[str, Json]:
    return {"type": "function", "function": {"name": name, "description": "Do.", "parameters": parameters}}


OWN_TOOLS = [tool.schema for tool in all_tools()]
_TOOLS = st.lists(
    st.sampled_from(
        [
            *OWN_TOOLS,
            _tool("none", {"type": "object", "properties": {}}),
            _tool("read", {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            _tool("pick", {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}}),
            _tool("odd", {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(?<x>a)"}}}),
            _tool("any", {"anyOf": [{"type": "object"}, {"type": "object", "properties": {}}]}),
        ]
    ),
    max_size=3,
    unique_by=lambda tool: tool["function"]["name"],
)


@st.composite
def _conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    messages = [Message("system", draw(_TEXTS))] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(1, 3))):
        text = draw(_TEXTS)
        parts = ({"type": "text", "text": text or "look"}, PICTURE)
        messages.append(Message("user", parts if draw(st.integers(0, 3)) == 0 else text))
        calls = tuple(
            ToolCall(f"call_{turn}_{at}", "read", draw(st.sampled_from(["{}", '{"a": "b"}', "", "{"])))
            for at in range(draw(st.integers(0, 2)))
        )
        messages.append(Message("assistant", draw(_TEXTS), tool_calls=calls))
        messages += [Message("tool", draw(_TEXTS), tool_call_id=call.id, name="read") for call in calls]
    return (*messages, Message("user", draw(_TEXTS)))


def _keys(model: str) -> dict[str, str]:
    provider = model.partition("/")[0].upper()
    return {f"{_KEY_NAMES.get(provider, provider)}_API_KEY": "sk-0123456789"}


_KEY_NAMES = {"TOGETHER_AI": "TOGETHERAI"}


@pytest.mark.parametrize("model", MODELS)
async def test_a_plain_request_goes_the_direct_way(both_ways: BothWays, model: str) -> None:
    both_ways.direct._environ = {**KEYS, **_keys(model)}
    base = f"{both_ways.server.address}/v1"
    request = Request(model, (Message("user", "hi"),), tuple(OWN_TOOLS), api_base=base)
    assert is_direct(request, both_ways.direct)


@_FEW
@given(
    model=st.sampled_from(MODELS),
    messages=_conversations(),
    tools=_TOOLS,
    options=st.sampled_from([("auto", None), ("none", None), ("auto", 1), ("none", 4096)]),
)
async def test_both_ways_send_the_same(
    both_ways: BothWays, model: str, messages: tuple[Message, ...], tools: Any, options: Any
) -> None:
    server = both_ways.server
    server.pieces = [ANSWER]
    server.requests.clear()
    for provider in (both_ways.direct, both_ways.litellm):
        provider._environ = {**KEYS, **_keys(model)}
    base = f"{server.address}/v1"
    request = Request(model, messages, tuple(tools), *options, session_id="s1", api_base=base)
    direct, by_litellm = await both_ways.outcomes(request)
    assert direct == by_litellm
    (path, headers, body), (other_path, other_headers, other_body) = server.requests
    assert (path, body) == (other_path, other_body), json.dumps([body, other_body], indent=1)
    if headers.get("authorization"):
        assert headers["authorization"] == other_headers["Authorization"]
