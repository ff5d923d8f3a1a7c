"""A reply is put together from fragments, whatever the order a server sends them in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rolling_chat.messages import Ending, Message
from rolling_chat.providers.protocol import Delta, ProviderError, ToolCallDelta
from rolling_chat.providers.reply_builder import MAX_CALLS, MAX_CHARACTERS, ReplyBuilder
from rolling_chat.providers.wire import made_by

MODEL = "gemini/gemini-2.5-pro"


def _chunk(finish_reason: str | None = None, **delta: Any) -> Any:
    return SimpleNamespace(
        choices=[SimpleNamespace(delta=SimpleNamespace(**delta), finish_reason=finish_reason)]
    )


def _fragment(index: int, id: str | None, name: str | None, arguments: str, **fields: Any) -> Any:
    function = SimpleNamespace(name=name, arguments=arguments)
    return SimpleNamespace(index=index, id=id, function=function, **fields)


def _build(*chunks: Any) -> tuple[Message, list[Delta]]:
    builder = ReplyBuilder()
    deltas = [delta for chunk in chunks for delta in builder.add(chunk)]
    return builder.message(made_by(MODEL)), deltas


def test_parallel_calls_are_told_apart_by_index() -> None:
    message, deltas = _build(
        _chunk(tool_calls=[_fragment(0, "a", "read", "")]),
        _chunk(tool_calls=[_fragment(1, "b", "list", "")]),
        _chunk(tool_calls=[_fragment(1, None, None, "{}"), _fragment(0, None, None, '{"x"')]),
        _chunk(tool_calls=[_fragment(0, None, None, ":1}")]),
    )

    assert [(call.id, call.name, call.arguments) for call in message.tool_calls] == [
        ("a", "read", '{"x":1}'),
        ("b", "list", "{}"),
    ]
    assert deltas[-1] == ToolCallDelta(0, "a", "read", ":1}")


def test_calls_that_all_have_index_0_are_told_apart_by_id() -> None:
    message, _deltas = _build(
        _chunk(tool_calls=[_fragment(0, "a", "read", '{"x"')]),
        _chunk(tool_calls=[_fragment(0, None, None, ":1}")]),
        _chunk(tool_calls=[_fragment(0, "b", "read", '{"x"')]),
        _chunk(tool_calls=[_fragment(0, None, None, ":2}")]),
    )

    assert [(call.id, call.arguments) for call in message.tool_calls] == [("a", '{"x":1}'), ("b", '{"x":2}')]


def test_an_id_and_name_that_come_with_every_fragment_are_one_call() -> None:
    message, _deltas = _build(
        _chunk(tool_calls=[_fragment(0, "a", "read", "{")]),
        _chunk(tool_calls=[_fragment(0, "a", "read", "}")]),
    )
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("read", "{}")]


def test_a_call_that_never_got_a_name_is_left_out() -> None:
    message, _deltas = _build(_chunk(content="hm"), _chunk(tool_calls=[_fragment(0, None, None, "{}")]))
    assert message.tool_calls == ()


def test_geminis_signature_is_taken_out_of_the_id_and_kept() -> None:
    message, _deltas = _build(
        _chunk(tool_calls=[_fragment(0, "call_1__thought__AbC==", "read", "{}")]),
        _chunk(provider_specific_fields={"thought_signatures": ["AbC==", "XyZ=="]}, content="so"),
    )

    assert message.tool_calls[0].id == "call_1"
    assert message.extras == {
        "signatures": {
            "calls": {"0": {"thought_signature": "AbC=="}},
            "texts": [{"thought_signature": "XyZ=="}],
        }
    }


def test_only_signed_thinking_is_kept_for_the_provider() -> None:
    message, _deltas = _build(
        _chunk(reasoning_content="first ", thinking_blocks=[{"type": "thinking", "thinking": "first "}]),
        _chunk(reasoning_content="second", thinking_blocks=[{"type": "thinking", "thinking": "second"}]),
        _chunk(
            reasoning_content="",
            thinking_blocks=[{"type": "thinking", "thinking": "first second", "signature": "c2ln"}],
        ),
        _chunk(thinking_blocks=[{"type": "redacted_thinking", "data": "ZGF0YQ"}]),
    )

    assert message.extras == {
        "reasoning_content": "first second",
        "thinking_blocks": [
            {"type": "thinking", "thinking": "first second", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZGF0YQ"},
        ],
    }


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "x" * 100_000},
        {"reasoning_content": "x" * 100_000},
        {"tool_calls": [_fragment(0, "a", "read", "x" * 100_000)]},
    ],
    ids=["text", "thinking", "arguments"],
)
def test_a_reply_without_an_end_is_stopped(delta: dict[str, Any]) -> None:
    with pytest.raises(ProviderError, match="The reply was stopped"):
        _build(*[_chunk(**delta)] * (MAX_CHARACTERS // 100_000 + 1))


def test_a_reply_of_endless_calls_is_stopped() -> None:
    chunks = [_chunk(tool_calls=[_fragment(n, f"c{n}", "read", "")]) for n in range(MAX_CALLS + 1)]
    with pytest.raises(ProviderError, match="The reply was stopped"):
        _build(*chunks)


def test_a_reply_cut_at_its_limit_says_so() -> None:
    for reason in ("length", "model_context_window_exceeded"):
        message, _deltas = _build(_chunk(content="half a"), _chunk(finish_reason=reason))
        assert message.ending is Ending.LENGTH


def test_a_chunk_of_usage_alone_has_no_deltas() -> None:
    assert list(ReplyBuilder().add(SimpleNamespace(choices=[], usage=object()))) == []
