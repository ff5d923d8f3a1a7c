"""Anthropic's streams are parsed without litellm as litellm parses them."""

from __future__ import annotations

import copy
import importlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.messages import Ending, Json, MadeBy, Message, Usage
from rolling_chat.providers.direct.anthropic_events import AnthropicEvents
from rolling_chat.providers.direct.errors import AnswerError
from rolling_chat.providers.errors import classify
from rolling_chat.providers.fragments import CallFragment, Fragment
from rolling_chat.providers.litellm_chunks import fragments_of, usage_of
from rolling_chat.providers.litellm_loading import load_litellm
from rolling_chat.providers.protocol import ErrorKind
from rolling_chat.providers.reply_builder import ReplyBuilder
from rolling_chat.providers.usage import UsageReader

Event = dict[str, Json]
Read = Callable[[list[Event]], list[Fragment]]


@pytest.fixture(scope="module")
def read_by_litellm() -> Read:
    load_litellm(None)
    handler = importlib.import_module("litellm.llms.anthropic.chat.handler")

    def read(events: list[Event]) -> list[Fragment]:
        parser = handler.ModelResponseIterator(streaming_response=iter(()), sync_stream=True)
        fragments = []
        for event in copy.deepcopy(events):
            chunk = parser.chunk_parser(event)
            reason = chunk.choices[0].finish_reason
            fragments += [*fragments_of(chunk), Fragment(usage=usage_of(chunk), has_ended=bool(reason))]
        return fragments

    return read


def read(events: Iterable[Event]) -> list[Fragment]:
    parser = AnthropicEvents()
    return [fragment for fragment in map(parser.read, events) if fragment is not None]


def in_sum(fragments: Iterable[Fragment]) -> tuple[Message, Usage, bool]:
    reply, usage = ReplyBuilder(), UsageReader()
    for fragment in fragments:
        list(reply.add(fragment))
        usage.add(fragment.usage)
    return reply.message(MadeBy("anthropic", "claude")), usage.usage, reply.has_ended


WORDS = st.sampled_from(["", " ", "hi", "ünï 🦜", "\n"]) | st.text(max_size=4)
COUNTS = st.sampled_from([0, 1, 7, 2_000])


def start(index: int, block: Event) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Json) -> Event:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


@st.composite
def blocks(draw: st.DrawFn, index: int) -> list[Event]:
    words = draw(st.lists(WORDS, max_size=3))
    kinds = [
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "server_tool_use",
        "web_search_tool_result",
        "new",
    ]
    match kind := draw(st.sampled_from([*kinds, "text", "thinking", "tool_use", "tool_use"])):
        case "text":
            events = [start(index, {"type": kind, "text": draw(WORDS)})]
            events += [delta(index, "text_delta", text=word) for word in words]
            if draw(st.booleans()):
                events.append(delta(index, "citations_delta", citation={"type": "char_location"}))
        case "thinking":
            events = [start(index, {"type": kind, "thinking": "", "signature": ""})]
            events += [delta(index, "thinking_delta", thinking=word) for word in words]
            if draw(st.booleans()):
                events.append(delta(index, "signature_delta", signature=draw(WORDS)))
        case "redacted_thinking":
            events = [start(index, {"type": kind, "data": draw(WORDS)})]
        case "tool_use" | "server_tool_use":
            events = [start(index, {"type": kind, "id": f"toolu_{index}", "name": "run", "input": {}})]
            events += [delta(index, "input_json_delta", partial_json=word) for word in words]
        case _:
            block = {"type": kind, "tool_use_id": "srvtoolu_1", "content": []}
            events = [start(index, block)]
            events += [delta(index, "input_json_delta", partial_json=word) for word in words]
    return [*events, {"type": "content_block_stop", "index": index}]


@st.composite
def usages(draw: st.DrawFn, *names: str) -> Event:
    usage: Event = {name: draw(COUNTS | st.none()) for name in names if draw(st.booleans())}
    if draw(st.booleans()):
        usage["output_tokens_details"] = draw(st.none() | st.fixed_dictionaries({"thinking_tokens": COUNTS}))
    if draw(st.booleans()):
        usage["server_tool_use"] = draw(st.none() | st.fixed_dictionaries({"web_search_requests": COUNTS}))
    if len(names) > 1 and draw(st.booleans()):
        usage["iterations"] = draw(st.lists(usages(*names).map(_round), max_size=3))
    return usage


def _round(usage: Event) -> Event:
    return {"type": "message", **{key: value for key, value in usage.items() if key != "iterations"}}


INPUT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
REASONS = st.sampled_from(
    [
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
        "compaction",
        "new",
        None,
    ]
)


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """Events of an answer, perhaps cut off after any of them."""
    events: list[Event] = [
        {"type": "message_start", "message": {"model": "claude", "usage": draw(usages(*INPUT))}}
    ]
    for index in range(draw(st.integers(0, 4))):
        events += draw(blocks(index))
    ends = draw(st.sampled_from([INPUT, ("output_tokens",)]))
    last: Event = {"type": "message_delta", "delta": {"stop_reason": draw(REASONS), "stop_sequence": None}}
    events.append(last | draw(st.just({}) | usages(*ends).map(lambda usage: {"usage": usage})))
    events.append({"type": "message_stop"})
    for _ in range(draw(st.integers(0, 2))):
        events.insert(draw(st.integers(0, len(events))), {"type": "ping"})
    return events[: draw(st.integers(0, len(events)) | st.just(len(events)))]


@given(streams())
def test_a_stream_is_the_reply_that_litellm_makes_of_it(read_by_litellm: Read, events: list[Event]) -> None:
    assert in_sum(read(events)) == in_sum(read_by_litellm(events))


@given(streams())
def test_text_reasoning_and_calls_come_with_the_event_that_has_them(
    read_by_litellm: Read, events: list[Event]
) -> None:
    def said(fragments: Iterable[Fragment]) -> list[Any]:
        return [
            (one.text, one.reasoning, one.calls)
            for one in fragments
            if one.text or one.reasoning or one.calls
        ]

    ours = [(text, reasoning, tuple(map(_filled, calls))) for text, reasoning, calls in said(read(events))]
    theirs = said(read_by_litellm(events))
    assert ours == [one for one in theirs if one[0] or one[1] or any(map(_filled, one[2]))]


def _filled(call: CallFragment) -> CallFragment | None:
    return call if call.id or call.name or call.arguments else None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["text", "tool_use", "", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "text", "usage", "input_tokens", "iterations", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
KINDS = ("message_start", "message_delta", "content_block_start", "content_block_delta", "content_block_stop")


@st.composite
def oddities(draw: st.DrawFn) -> Event:
    fields = draw(
        st.dictionaries(
            st.sampled_from(["message", "delta", "content_block", "usage", "index"]), JSON, max_size=4
        )
    )
    return {"type": draw(st.sampled_from(KINDS) | JSON), **fields}


@given(st.lists(streams() | st.lists(oddities(), max_size=3), max_size=4))
def test_any_event_is_accepted(parts: list[list[Event]]) -> None:
    message, usage, _has_ended = in_sum(read(event for events in parts for event in events))
    json.dumps(message.to_dict())
    assert min(usage.input_tokens, usage.output_tokens, usage.reasoning_tokens) >= 0


def _answer(reason: str) -> Iterator[Event]:
    yield start(0, {"type": "text", "text": "half a"})
    yield {"type": "message_delta", "delta": {"stop_reason": reason}}


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
def test_an_answer_that_reached_its_limit_was_cut(reason: str) -> None:
    message, _usage, has_ended = in_sum(read(_answer(reason)))
    assert message.ending is Ending.LENGTH
    assert has_ended


def test_the_last_event_ends_a_reply_that_gave_no_reason() -> None:
    events = [start(0, {"type": "text", "text": "whole"}), {"type": "message_stop"}]
    assert not in_sum(read(events[:1]))[2]
    assert in_sum(read(events))[2]


def test_a_block_that_is_signed_over_and_over_is_kept_once() -> None:
    events = [
        start(0, {"type": "thinking", "thinking": ""}),
        delta(0, "thinking_delta", thinking="long " * 1000),
    ]
    events += [delta(0, "signature_delta", signature="s")] * 1000
    (block,) = (block for fragment in read(events) for block in fragment.thinking)
    assert block == {"type": "thinking", "thinking": "long " * 1000, "signature": "s"}


def test_the_cached_tokens_are_a_part_of_the_input() -> None:
    reported = {"input_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 300}
    events: list[Event] = [
        {"type": "message_start", "message": {"usage": {**reported, "output_tokens": 1}}},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 40}},
    ]
    assert in_sum(read(events))[1] == Usage(325, 40, cached_read_tokens=20, cached_write_tokens=300)


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        ("overloaded_error", "Overloaded", ErrorKind.OVERLOADED),
        ("api_error", "Internal server error", ErrorKind.OVERLOADED),
        ("rate_limit_error", "Number of requests has exceeded your rate limit", ErrorKind.THROTTLED),
        ("invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum", ErrorKind.TOO_LONG),
    ],
)
def test_an_error_within_the_stream_is_what_litellm_makes_of_it(
    read_by_litellm: Read, kind: str, message: str, expected: ErrorKind
) -> None:
    event = {"type": "error", "error": {"type": kind, "message": message}}
    with pytest.raises(Exception, match=message) as theirs:
        read_by_litellm([event])
    with pytest.raises(AnswerError, match=message) as ours:
        read([event])
    assert (ours.value.body, ours.value.message, ours.value.status_code) == (event, message, 500)
    for error in (ours.value, theirs.value):
        assert classify(error, "anthropic/claude-sonnet-4-5").kind is expected
    assert str(classify(ours.value, "anthropic/claude-sonnet-4-5")) == str(
        classify(theirs.value, "anthropic/claude-sonnet-4-5")
    )


def test_an_error_without_words_is_quoted_as_it_came() -> None:
    with pytest.raises(AnswerError, match="odd"):
        read([{"type": "error", "error": ["odd"]}])
