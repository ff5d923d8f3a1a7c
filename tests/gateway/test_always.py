"""What always holds of a request that passes through the gateway, whatever a client sends."""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rolling_chat.context import prompt_bound
from rolling_chat.messages import Message
from tests.support.conversations import SIGNED, conversations, torn_conversations
from tests.support.gateway import SharedMemory, Worker, anthropic_form, refused_error

Body = dict[str, Any]

KINDS = {"acompletion": lambda messages: {"messages": messages}, "anthropic_messages": anthropic_form}
DOCUMENT = {"type": "document", "source": {"type": "base64", "data": "QUJD" * 600}, "title": "a.pdf"}
FIELDS = st.sampled_from(
    [
        "role",
        "content",
        "type",
        "text",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "tool_call_id",
        "input",
        "tool_use_id",
        "thinking_blocks",
        "cache_control",
        "source",
        "data",
        "budget_tokens",
    ]
)
WINDOWS = st.sampled_from([600, 1_500, 4_000, 20_000])


@st.composite
def odd_conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Conversations with parts that nobody can read, signed thinking, marks and fields of a client's own."""
    messages = copy.deepcopy(draw(conversations()))
    for message in messages[1:]:
        match message["role"], draw(st.integers(0, 3)):
            case "assistant", 0:
                message.update(copy.deepcopy(SIGNED))
            case "assistant", 1:
                message["x_field"] = {"a": [1]}
            case "tool" | "user", 0:
                message["content"] = [{"type": "text", "text": message["content"]}, DOCUMENT]
            case "user", 1:
                mark = {"cache_control": {"type": "ephemeral"}}
                message["content"] = [{"type": "text", "text": message["content"], **mark}]
    return messages


def size(body: Body) -> int:
    return len(json.dumps([body.get("system"), body["messages"]], ensure_ascii=False).encode())


def bound(body: Body) -> int:
    """The most tokens of a body in either form, each block counted as it stands."""
    texts = [body.get("system")] if isinstance(body.get("system"), str) else body.get("system") or []
    messages = [
        Message("system", text if isinstance(text, str) else text["text"]).to_dict() for text in texts
    ]
    return prompt_bound([*messages, *map(_plain, body["messages"])], model="gpt-4o")


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    return {**message, "content": "\n".join(map(_text, content))}


def _text(block: dict[str, Any]) -> str:
    """A block as text; a file counts for its pages, which nobody knows here."""
    inner = block.get("content")
    if isinstance(inner, list):
        block = {**block, "content": [_text(part) for part in inner]}
    return "" if block.get("type") == "document" else block.get("text") or json.dumps(block)


def run(worker: Worker, body: Body, kind: str) -> Body | None:
    """What goes to the model; None for a refusal."""
    try:
        return asyncio.run(worker.send(body, kind))
    except refused_error():
        return None


@pytest.mark.parametrize("kind", KINDS)
@given(messages=odd_conversations(), window=WINDOWS)
def test_no_request_grows_and_none_is_over(kind: str, messages: list[dict[str, Any]], window: int) -> None:
    worker = Worker(window)
    body = KINDS[kind](messages)
    sent = run(worker, body, kind)
    assert not worker.hooks.counters.requests["failed_open"]
    if sent is None:
        return
    assert size(sent) <= size(body)
    if worker.headers["x-rolling-outcome"] == "unchanged":
        assert sent["messages"] == body["messages"]
        assert sent.get("system") == body.get("system")
    else:
        assert int(worker.headers["x-rolling-tokens"]) <= window
        assert bound(sent) <= window * 1.1


@pytest.mark.parametrize("kind", KINDS)
@given(messages=odd_conversations(), window=WINDOWS)
def test_what_cannot_be_read_is_intact_or_gone(
    kind: str, messages: list[dict[str, Any]], window: int
) -> None:
    worker = Worker(window)
    body = KINDS[kind](messages)
    sent = run(worker, body, kind)
    if sent is None:
        return
    given_parts, sent_parts = map(_unreadable, (body, sent))
    assert all(part in given_parts for part in sent_parts)
    signed = [message for message in body["messages"] if _is_signed(message)]
    assert all(message in signed for message in sent["messages"] if _is_signed(message))


def _unreadable(body: Body) -> list[Any]:
    found = []
    for message in body["messages"]:
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        inner = [part for block in blocks for part in _parts(block.get("content"))]
        found += [
            part for part in (*blocks, *inner) if part.get("type") not in {"text", "tool_result", "tool_use"}
        ]
    return found


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []


def _is_signed(message: dict[str, Any]) -> bool:
    blocks = _parts(message.get("content"))
    return "thinking_blocks" in message or any(block.get("type") == "thinking" for block in blocks)


@pytest.mark.parametrize("kind", KINDS)
@given(messages=torn_conversations(), window=WINDOWS)
def test_a_torn_conversation_is_no_fault_of_the_gateway(
    kind: str, messages: list[dict[str, Any]], window: int
) -> None:
    worker = Worker(window)
    body = KINDS[kind](messages)
    if body["messages"]:
        run(worker, body, kind)
        assert not worker.hooks.counters.requests["failed_open"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "text", "user", "tool_use"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize("kind", KINDS)
@given(messages=st.lists(st.dictionaries(FIELDS, JSON, max_size=6), min_size=1, max_size=4), more=JSON)
def test_what_makes_no_sense_is_no_fault_of_the_gateway(kind: str, messages: list[Any], more: Any) -> None:
    worker = Worker(600)
    odd = {"system": more, "tools": more, "max_tokens": more, "thinking": more, "response_format": more}
    for body in ({"messages": messages}, {"messages": messages, **odd}):
        run(worker, copy.deepcopy(body), kind)
    assert not worker.hooks.counters.requests["failed_open"]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=max(1, settings.default.max_examples // 4))
@given(messages=conversations(), window=WINDOWS, choices=st.lists(st.booleans(), min_size=16, max_size=16))
def test_workers_that_share_a_cache_are_one(
    kind: str, messages: list[dict[str, Any]], window: int, choices: list[bool]
) -> None:
    """A growing conversation gets the same requests from one worker as from two by turns, one restarted."""
    shared = SharedMemory()
    one, two = Worker(window), [Worker(window, shared=shared), Worker(window, shared=shared)]
    ends = _request_ends(messages)
    for number, end in enumerate(ends):
        body = KINDS[kind](messages[:end])
        if number == len(ends) // 2:
            two[0] = Worker(window, shared=shared)
        assert run(one, body, kind) == run(two[choices[number % 16]], body, kind)


def _request_ends(messages: list[dict[str, Any]]) -> list[int]:
    """The lengths at which a client asks: after its own words, and after all results of an answer."""
    roles = [*(message["role"] for message in messages), "assistant"]
    return [
        end
        for end in range(2, len(messages) + 1)
        if roles[end - 1] in {"user", "tool"} and roles[end] != "tool"
    ]


@given(messages=conversations(), window=WINDOWS)
def test_the_prefix_stands_still_until_more_is_dropped(messages: list[dict[str, Any]], window: int) -> None:
    worker = Worker(window)
    before: list[Any] = []
    omitted = "0"
    for end in _request_ends(messages):
        sent = run(worker, {"messages": messages[:end]}, "acompletion")
        if sent is None:
            before = []
            continue
        if worker.headers["x-rolling-omitted"] == omitted and worker.headers["x-rolling-shortened"] == "0":
            assert sent["messages"][: len(before)] == before
        before, omitted = sent["messages"], worker.headers["x-rolling-omitted"]


@pytest.mark.parametrize("as_block", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_of_a_long_answer_most_goes_on_in_place_of_nothing(kind: str, as_block: bool) -> None:
    answer = "\n".join(f"line {number} of a long answer" for number in range(900))
    messages = [
        {"role": "user", "content": "tell me"},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": "and now?"},
    ]
    body = KINDS[kind](messages)
    body["messages"][1]["content"] = [{"type": "text", "text": answer}] if as_block else answer
    worker = Worker(6_000)
    sent = run(worker, body, kind)
    assert sent is not None
    assert not worker.hooks.counters.requests["failed_open"]
    said = json.dumps(sent["messages"])
    assert "line 0 of" in said
    assert "[truncated: kept first+last" in said
