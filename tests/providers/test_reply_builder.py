"""A reply is assembled from fragments, in whatever order a server sends them."""

from __future__ import annotations

import pytest

from rolling_chat.messages import Ending, Message, Usage
from rolling_chat.providers.fragments import CallFragment, Fragment
from rolling_chat.providers.protocol import Delta, ProviderError, ToolCallDelta
from rolling_chat.providers.reply_builder import MAX_CALLS, MAX_CHARACTERS, ReplyBuilder
from rolling_chat.providers.wire import made_by

MODEL = "gemini/gemini-2.5-pro"


def _calls(*calls: CallFragment) -> Fragment:
    return Fragment(calls=calls)


def _build(*fragments: Fragment) -> tuple[Message, list[Delta]]:
    builder = ReplyBuilder()
    deltas = [delta for fragment in fragments for delta in builder.add(fragment)]
    return builder.message(made_by(MODEL)), deltas


def test_parallel_calls_are_told_apart_by_index() -> None:
    message, deltas = _build(
        _calls(CallFragment(0, "a", "read", "")),
        _calls(CallFragment(1, "b", "list", "")),
        _calls(CallFragment(1, "", "", "{}"), CallFragment(0, "", "", '{"x"')),
        _calls(CallFragment(0, "", "", ":1}")),
    )

    assert [(call.id, call.name, call.arguments) for call in message.tool_calls] == [
        ("a", "read", '{"x":1}'),
        ("b", "list", "{}"),
    ]
    assert deltas[-1] == ToolCallDelta(0, "a", "read", ":1}")


def test_calls_that_all_have_index_0_are_told_apart_by_id() -> None:
    message, _deltas = _build(
        _calls(CallFragment(0, "a", "read", '{"x"')),
        _calls(CallFragment(0, "", "", ":1}")),
        _calls(CallFragment(0, "b", "read", '{"x"')),
        _calls(CallFragment(0, "", "", ":2}")),
    )

    assert [(call.id, call.arguments) for call in message.tool_calls] == [("a", '{"x":1}'), ("b", '{"x":2}')]


def test_an_id_and_name_that_come_with_every_fragment_are_one_call() -> None:
    message, _deltas = _build(
        _calls(CallFragment(0, "a", "read", "{")),
        _calls(CallFragment(0, "a", "read", "}")),
    )
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("read", "{}")]


def test_a_call_that_never_got_a_name_is_left_out() -> None:
    message, _deltas = _build(Fragment(text="hm"), _calls(CallFragment(0, "", "", "{}")))
    assert message.tool_calls == ()


def test_a_signature_stays_with_its_call() -> None:
    message, _deltas = _build(
        _calls(CallFragment(0, "call_1", "read", "{}", signature="AbC==")),
        Fragment(text_signatures=("AbC==", "XyZ=="), text="so"),
    )

    assert message.extras == {
        "signatures": {
            "calls": {"0": {"thought_signature": "AbC=="}},
            "texts": [{"thought_signature": "XyZ=="}],
        }
    }


def test_only_signed_thinking_is_kept_for_the_provider() -> None:
    message, _deltas = _build(
        Fragment(reasoning="first ", thinking=({"type": "thinking", "thinking": "first "},)),
        Fragment(reasoning="second", thinking=({"type": "thinking", "thinking": "second"},)),
        Fragment(thinking=({"type": "thinking", "thinking": "first second", "signature": "c2ln"},)),
        Fragment(thinking=({"type": "redacted_thinking", "data": "ZGF0YQ"},)),
    )

    assert message.extras == {
        "reasoning_content": "first second",
        "thinking_blocks": [
            {"type": "thinking", "thinking": "first second", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZGF0YQ"},
        ],
    }


@pytest.mark.parametrize(
    "fragment",
    [
        Fragment(text="x" * 100_000),
        Fragment(reasoning="x" * 100_000),
        _calls(CallFragment(0, "a", "read", "x" * 100_000)),
        Fragment(thinking=({"type": "thinking", "thinking": "x" * 100_000, "signature": "s"},)),
    ],
    ids=["text", "thinking", "arguments", "signed thinking"],
)
def test_a_reply_without_an_end_is_stopped(fragment: Fragment) -> None:
    with pytest.raises(ProviderError, match="The reply was stopped"):
        _build(*[fragment] * (MAX_CHARACTERS // 100_000 + 1))


def test_thinking_that_came_in_pieces_counts_once() -> None:
    text = "x" * (MAX_CHARACTERS - 1)
    block = {"type": "thinking", "thinking": text, "signature": "s"}
    message, _deltas = _build(Fragment(reasoning=text), Fragment(thinking=(block,)))
    assert message.extras == {"reasoning_content": text, "thinking_blocks": [block]}


def test_a_reply_of_endless_calls_is_stopped() -> None:
    chunks = [_calls(CallFragment(n, f"c{n}", "read", "")) for n in range(MAX_CALLS + 1)]
    with pytest.raises(ProviderError, match="The reply was stopped"):
        _build(*chunks)


def test_a_reply_cut_at_its_limit_says_so() -> None:
    for reason in ("length", "model_context_window_exceeded"):
        message, _deltas = _build(Fragment(text="half a"), Fragment(finish_reason=reason))
        assert message.ending is Ending.LENGTH


def test_a_fragment_of_usage_alone_has_no_deltas() -> None:
    assert list(ReplyBuilder().add(Fragment(usage=Usage(3, 4)))) == []
