"""The direct way reads the same reply and the same errors as litellm from the same bytes."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rolling_chat.messages import Message
from rolling_chat.providers.protocol import Request
from tests.providers.direct.conftest import BothWays, is_direct
from tests.providers.test_overflow_errors import PARTS, WITH_BOTH_NUMBERS

_FEW = settings(
    settings.get_profile(settings.get_current_profile_name()),
    max_examples=max(25, settings().max_examples // 4),
    suppress_health_check=list(HealthCheck),
)
_TEXTS = st.sampled_from(["a", " word", "\n", "Grüße", "世界", "🌍", "data: [DONE]\n\n", "<think>", '"}'])


def _delta(draw: st.DrawFn) -> dict[str, Any]:
    match draw(st.sampled_from(["text", "text", "reasoning", "call", "more", "nothing"])):
        case "text":
            return {"content": draw(_TEXTS)}
        case "reasoning":
            return {draw(st.sampled_from(["reasoning_content", "reasoning"])): draw(_TEXTS)}
        case "call":
            index = draw(st.integers(0, 2))
            function = {"name": "read", "arguments": draw(st.sampled_from(["", "{}", '{"a"']))}
            return {
                "tool_calls": [{"index": index, "id": f"c{index}", "type": "function", "function": function}]
            }
        case "more":
            return {"tool_calls": [{"index": draw(st.integers(0, 2)), "function": {"arguments": ": 1}"}}]}
        case _:
            return draw(st.sampled_from([{}, {"role": "assistant"}, {"content": None}, {"content": ""}]))


@st.composite
def _streams(draw: st.DrawFn) -> list[Any]:
    """Events of a stream in OpenAI's form: of a reply, its end and its usage."""
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [_delta(draw) for _ in range(draw(st.integers(0, 12)))]
    events = [_chunk({"index": 0, "delta": delta, "finish_reason": None}) for delta in deltas]
    reason = draw(
        st.sampled_from(["stop", "length", "tool_calls", "content_filter", "eos", "MAX_TOKENS", None])
    )
    if reason:
        events.append(_chunk({"index": 0, "delta": {}, "finish_reason": reason}))
    if draw(st.booleans()):
        details = draw(st.sampled_from([None, {"cached_tokens": 3}, {"cached_tokens": 0}]))
        usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
        usage |= {} if details is None else {"prompt_tokens_details": details}
        usage |= draw(st.sampled_from([{}, {"completion_tokens_details": {"reasoning_tokens": 2}}]))
        events.append({**_chunk({}), "choices": [], "usage": usage})
    return events


def _chunk(choice: dict[str, Any]) -> dict[str, Any]:
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


@_FEW
@given(
    events=_streams(),
    between=st.sampled_from(["\n\n", "\r\n\r\n", "\n\n: ping\n\n"]),
    has_done=st.booleans(),
    cuts=st.lists(st.integers(0, 3_000), max_size=12),
)
async def test_both_ways_read_the_same_reply_however_the_bytes_are_split(
    both_ways: BothWays, events: list[Any], between: str, has_done: bool, cuts: list[int]
) -> None:
    lines = [f"data: {json.dumps(event, ensure_ascii=False)}" for event in events]
    lines += ["data: [DONE]"] if has_done else []
    whole = "".join(line + between for line in lines).encode()
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    server = both_ways.server
    server.status, server.pieces = 200, [whole[a:b] for a, b in itertools.pairwise(places)]
    request = Request("openai/m", (Message("user", "hi"),), api_base=f"{server.address}/v1")
    assert is_direct(request, both_ways.direct)
    direct, by_litellm = await both_ways.outcomes(request)
    assert direct == by_litellm


REFUSALS = [
    *((400, body) for body in (*WITH_BOTH_NUMBERS.values(), *PARTS.values())),
    (401, '{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}'),
    (402, '{"error": {"message": "Insufficient credits", "code": 402}}'),
    (403, '{"error": {"message": "Forbidden"}}'),
    (404, '{"error": {"message": "The model `m` does not exist", "code": "model_not_found"}}'),
    (413, "<html>Request Entity Too Large</html>"),
    (422, '{"detail": [{"loc": ["body", "tools"], "msg": "unsupported param: tools"}]}'),
    (429, '{"error": {"message": "Rate limit reached. Try again in 1.5s.", "code": "rate_limit"}}'),
    (500, "Internal Server Error"),
    (501, '{"error": "not implemented"}'),
    (502, "<html><body>Bad Gateway</body></html>"),
    (503, '{"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}'),
    (529, '{"error": {"type": "overloaded_error", "message": "Overloaded"}}'),
    (500, '{"error": {"message": "model requires more system memory than is available"}}'),
]


@pytest.mark.parametrize(("status", "body"), REFUSALS)
@pytest.mark.parametrize("model", ["openai/m", "anthropic/claude-sonnet-4-5"])
async def test_both_ways_report_a_refusal_alike(
    both_ways: BothWays, status: int, body: str, model: str
) -> None:
    server = both_ways.server
    server.status, server.pieces = status, [body.encode()]
    server.headers = {"retry-after": "7"} if status >= 429 else {}
    request = Request(model, (Message("user", "hi"),), max_tokens=50, api_base=server.address)
    assert is_direct(request, both_ways.direct)
    direct, by_litellm = await both_ways.outcomes(request)
    assert direct.error is not None
    assert direct == by_litellm


@pytest.mark.parametrize(
    "error",
    [
        {"message": "Overloaded", "type": "overloaded_error", "code": 529},
        {"message": "Provider returned error", "code": 502},
        {"message": "maximum context length is 1000 tokens. However, you requested 1200 tokens."},
        {"message": "Rate limit reached", "code": "rate_limit_exceeded"},
        "out of memory",
    ],
)
@pytest.mark.parametrize("before", [0, 1])
async def test_both_ways_report_an_error_in_a_stream_alike(
    both_ways: BothWays, error: object, before: int
) -> None:
    events = [_chunk({"index": 0, "delta": {"content": "half"}, "finish_reason": None})] * before
    server = both_ways.server
    server.pieces = [f"data: {json.dumps(event)}\n\n".encode() for event in (*events, {"error": error})]
    request = Request("openai/m", (Message("user", "hi"),), api_base=f"{server.address}/v1")
    direct, by_litellm = await both_ways.outcomes(request)
    assert direct.error is not None
    assert direct == by_litellm
