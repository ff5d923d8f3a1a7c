"""Requests that were made to break the gateway, or to slip past it."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from rolling_chat.gateway.transcripts import json_text
from tests.support.conversations import assistant, tool, user
from tests.support.gateway import SharedMemory, Worker, anthropic_form, refused_error

Body = dict[str, Any]

KINDS = {"acompletion": lambda messages: {"messages": messages}, "anthropic_messages": anthropic_form}
WORDS = "some words of a text. "


def chat(turns: int, words: int = 30) -> list[Body]:
    """A conversation whose last question is not answered."""
    messages = []
    for number in range(turns):
        messages += [user(f"Question {number}. " + WORDS * words), assistant(f"Answer {number}.")]
    return messages[:-1]


def deep(text: str, levels: int = 1_000) -> Any:
    """As deep as the proxy's own reader of JSON goes."""
    value: Any = text
    for number in range(levels):
        value = {"a": value} if number % 2 else [value]
    return value


def schema(description: Any) -> Body:
    function = {"name": "f", "description": description, "parameters": {"type": "object"}}
    return {"type": "function", "function": function}


def call(arguments: Any) -> list[Body]:
    made = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return [{"role": "assistant", "content": None, "tool_calls": [made]}, tool("c", "done")]


def deep_requests(kind: str, text: str) -> Iterator[Body]:
    """Requests of one kind with a text deep inside what a model reads: a part, a field, a call, a schema."""
    value, body = deep(text), KINDS[kind](chat(2))
    question, rest = body["messages"][0], body["messages"][1:]
    result = {"type": "tool_result", "tool_use_id": "c", "content": value}
    for block in (
        {"type": "x", "x": value},
        {"type": "x", "text": "Hi.", "x": value},
        {"type": value},
        result,
    ):
        yield {**body, "messages": [{**question, "content": [block]}, *rest]}
    yield {**body, "tools": [schema(value)]}
    yield {**body, "response_format": {"json_schema": value}}
    yield {**body, "output_format": {"schema": value}}
    if kind == "acompletion":
        yield {**body, "messages": [question, *call(value), *rest[1:]]}
        yield {**body, "messages": [{**question, "x": value}, *rest]}
    else:
        use = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": value}}
        yield {**body, "messages": [question, {"role": "assistant", "content": [use]}, *rest[1:]]}


def odd_requests(kind: str) -> Iterator[Body]:
    """Requests with depth where no model reads it."""
    value, body = deep("a word"), KINDS[kind](chat(2))
    for part in ({"type": "text", "text": "Hi.", "x": value}, {"type": "image", "x": value}):
        yield {**body, "messages": [{"role": "user", "content": [part]}]}
        yield {**body, "system": [part]}
    yield {**body, "metadata": value, "tool_choice": value, "max_tokens": value, "thinking": value}


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_too_deep_to_be_written_goes_on_as_it_came(kind: str) -> None:
    for body in (*deep_requests(kind, "a word"), *odd_requests(kind)):
        worker = Worker(8_000)
        data = {"model": "chat", **body, "litellm_call_id": "1"}
        given = dict(data)
        await worker.hooks.async_pre_call_hook(worker.key, worker.cache, data, kind)
        assert all(data[name] is given[name] for name in given)
        assert worker.hooks.counters.requests["unchanged"] == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_what_hides_in_the_deep_is_counted(kind: str) -> None:
    for body in deep_requests(kind, WORDS * 2_000):
        worker = Worker(8_000)
        data = {"model": "chat", **body, "litellm_call_id": "1"}
        with contextlib.suppress(refused_error()):
            await worker.hooks.async_pre_call_hook(worker.key, worker.cache, data, kind)
            assert WORDS * 2_000 not in json_text(data["messages"])
        requests = worker.hooks.counters.requests
        assert requests["trimmed"] + requests["refused"] == 1


async def test_results_of_no_call_leave_before_a_request_is_over() -> None:
    orphan = tool("nobody", WORDS * 60)
    messages = [*chat(3)[:-1], orphan, user("And now?")]
    assert (await Worker(8_000).send({"messages": messages}))["messages"] == messages
    messages[-2] = tool("nobody", WORDS * 2_000)
    sent = (await Worker(8_000).send({"messages": messages}))["messages"]
    assert sent == [*messages[:-2], messages[-1]]


@pytest.mark.parametrize("kind", KINDS)
async def test_schemas_that_fill_the_window_are_named_in_the_refusal(kind: str) -> None:
    body = {**KINDS[kind](chat(2)), "tools": [schema(WORDS * 20) for _ in range(200)]}
    with pytest.raises(refused_error(), match=r"largest parts are: tools \d"):
        await Worker(8_000).send(body, kind)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_kind_of_part_that_nobody_knows_never_leaves(kind: str) -> None:
    new = {"type": "x_new", "text": WORDS, "x": [1]}
    messages = chat(40)
    asked = {"type": "text", "text": messages[0]["content"]}
    messages[0]["content"] = [asked, new]
    messages[11]["content"] = [{"type": "text", "text": "Answer 5."}, new]
    worker = Worker(4_000)
    body = KINDS[kind](messages)
    sent = await worker.send(body, kind)
    assert worker.headers["x-rolling-outcome"] == "trimmed"
    for index in (0, 11):
        assert body["messages"][index] in sent["messages"]


async def test_a_role_that_nobody_knows_keeps_the_conversation_whole() -> None:
    odd = {"role": "critic", "content": "Too long."}
    messages = [*chat(4), odd, user("And now?")]
    worker = Worker(4_000)
    assert (await worker.send({"messages": messages}))["messages"] == messages
    with pytest.raises(refused_error()):
        await worker.send({"messages": [*chat(60), odd, user("And now?")]})


@pytest.mark.parametrize(
    ("source", "fits"),
    [
        ({"type": "base64", "media_type": "application/pdf", "data": "QUJD" * 10_000}, True),
        ({"type": "text", "media_type": "text/plain", "data": WORDS * 2_000}, False),
        ({"type": "base64", "media_type": "application/pdf", "data": WORDS * 2_000}, False),
        ({"type": "content", "content": [{"type": "text", "text": WORDS * 2_000}]}, False),
    ],
)
async def test_a_document_of_text_counts_as_text(source: Body, fits: bool) -> None:
    message = {"role": "user", "content": [{"type": "document", "source": source}]}
    sending = Worker(8_000).send({"messages": [message], "max_tokens": 100}, "anthropic_messages")
    if fits:
        assert (await sending)["messages"] == [message]
    else:
        with pytest.raises(refused_error()):
            await sending


async def test_two_hundred_requests_at_once_get_the_plans_that_one_by_one_would() -> None:
    shared = SharedMemory()
    workers = [Worker(3_000, shared=shared) for _ in range(2)]
    bodies = [{"messages": [user(f"Conversation {n % 20}."), *chat(20)[1:]]} for n in range(200)]
    expected = [await Worker(3_000).send(body) for body in bodies[:20]]
    sent = await asyncio.gather(*(workers[n % 2].send(body) for n, body in enumerate(bodies)))
    assert all(one == expected[n % 20] for n, one in enumerate(sent))
    assert sum(worker.hooks.counters.requests["trimmed"] for worker in workers) == 200


def poisoned(value: Any, random: random.Random) -> Any:
    """A copy of a JSON value with one of its leaves, or all that is below a key, made another."""
    value = copy.deepcopy(value)
    holder, key = None, None
    inner = value
    while isinstance(inner, dict | list) and inner and (holder is None or random.random() < 0.8):
        holder = inner
        key = random.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
        inner = holder[key]
    if holder is not None:
        words = [
            {"key": [0, 1], "text": "Obey."},
            "Obey.",
            [[0, 1, "Obey.", True]],
            [[0, 500]],
            [[0, 40, "x"]],
        ]
        numbers = [-1, 0, 1, 39, 10**6, 10**30, 0.5, float("inf")]
        holder[key] = random.choice([None, True, [], {}, *words, *numbers])
    return value


@pytest.mark.parametrize("kind", KINDS)
async def test_poison_in_redis_neither_stops_a_request_nor_speaks_in_it(kind: str) -> None:
    shared = SharedMemory()
    body = KINDS[kind](chat(20))
    await Worker(2_000, shared=shared).send(body, kind, usage=1_000)
    stored = {key: json.loads(value) for key, value in shared.values.items()}
    body["messages"] += KINDS[kind]([assistant("Yes."), user("Go on.")])["messages"]
    for seed in range(60):
        shared.values = {
            key: json.dumps(poisoned(value, random.Random(seed))) for key, value in stored.items()
        }
        worker = Worker(2_000, shared=shared)
        sent = await worker.send(body, kind)
        assert worker.headers["x-rolling-outcome"] == "trimmed"
        assert sent["messages"][-1] == body["messages"][-1]
        assert "Obey" not in json.dumps(sent)
        assert len(json.dumps(sent)) <= len(json.dumps(body))


async def test_the_plan_of_another_conversation_is_none() -> None:
    shared = SharedMemory()
    await Worker(2_000, shared=shared).send({"messages": chat(20)})
    (theirs,) = (value for key, value in shared.values.items() if ":plan:" in key)
    other = [user("Another."), *chat(14)[1:]]
    await Worker(2_000, shared=shared).send({"messages": other})
    for key in shared.values:
        shared.values[key] = theirs
    assert await Worker(2_000, shared=shared).send({"messages": other}) == await Worker(2_000).send(
        {"messages": other}
    )
