"""The callback as the proxy calls it."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from typing import Any

import pytest

from rolling_chat.providers.litellm_loading import load_litellm
from rolling_chat.providers.overflow_errors import find_overflow, read_body
from tests.support.conversations import assistant, tool, user
from tests.support.gateway import Key, SharedMemory, Worker, refused_error

SYSTEM = {"role": "system", "content": "Be nice."}


def chat(turns: int, words: int = 120) -> list[dict[str, Any]]:
    """A conversation whose last question is not answered."""
    messages = [SYSTEM]
    for number in range(turns):
        messages += [user(f"Question {number}. " + "word " * words), assistant(f"Answer {number}.")]
    return messages[:-1]


def test_the_proxy_finds_the_callback_by_its_name() -> None:
    load_litellm(None)
    from litellm.proxy.types_utils.utils import get_instance_fn

    from rolling_chat.gateway import RollingWindow, handler

    assert get_instance_fn("rolling_chat.gateway.handler", "/etc/litellm/config.yaml") is handler
    assert isinstance(handler, RollingWindow)


async def test_a_request_that_fits_is_not_touched() -> None:
    worker = Worker(8_000)
    body = {"messages": chat(5), "temperature": 0.3, "max_tokens": 50}
    assert await worker.send(body) == {"model": "chat", **body}
    assert worker.headers["x-rolling-outcome"] == "unchanged"


async def test_headers_say_what_was_done() -> None:
    worker = Worker(4_000)
    sent = await worker.send({"messages": chat(40)})
    omitted = int(worker.headers["x-rolling-omitted"])
    assert omitted == 80 - len(sent["messages"]) > 0
    assert str(omitted) in sent["messages"][0]["content"]
    assert worker.headers["x-rolling-window"] == "4000"
    assert int(worker.headers["x-rolling-tokens"]) < 4_000
    assert worker.hooks.counters.requests["trimmed"] == 1


async def test_a_fork_and_an_edit_get_plans_of_their_own() -> None:
    worker = Worker(4_000)
    messages = chat(40)
    sent = await worker.send({"messages": messages})
    edited = copy.deepcopy(messages)
    edited[1]["content"] = "Another question."
    fork = [*messages[:-1], user("Something else.")]
    assert (await worker.send({"messages": edited}))["messages"][-1] == messages[-1]
    assert (await worker.send({"messages": fork}))["messages"][-1] == fork[-1]
    assert await worker.send({"messages": messages}) == sent


async def test_a_user_who_interrupts_the_tools_keeps_the_plan() -> None:
    worker = Worker(1_500)
    messages = [SYSTEM, user("Go.")]
    for number in range(8):
        messages += [assistant("", (f"c{number}", "read")), tool(f"c{number}", "word " * 150)]
    before = (await worker.send({"messages": messages}))["messages"]
    after = (await worker.send({"messages": [*messages, user("Stop.")]}))["messages"]
    assert after[: len(before)] == before


async def test_another_system_text_and_moving_marks_keep_the_plan() -> None:
    worker = Worker(4_000)
    messages = chat(40)
    await worker.send({"messages": messages})
    omitted = worker.headers["x-rolling-omitted"]
    mark = {"cache_control": {"type": "ephemeral"}}
    marked = [{"type": "text", "text": messages[-1]["content"], **mark}]
    grown = [{**SYSTEM, "content": "It is Tuesday."}, *messages[1:-1], {**messages[-1], "content": marked}]
    sent = await worker.send({"messages": [*grown, assistant("Yes."), user("Go on.")]})
    assert worker.headers["x-rolling-omitted"] == omitted
    assert {**messages[-1], "content": marked} in sent["messages"]


async def test_requests_of_one_conversation_at_once_get_the_same_plan() -> None:
    worker = Worker(4_000, shared=SharedMemory())
    messages = chat(60)
    sent = await asyncio.gather(*(worker.send({"messages": messages}) for _ in range(8)))
    assert all(one["messages"] == sent[0]["messages"] for one in sent)


async def test_keys_do_not_share_plans() -> None:
    shared = SharedMemory()
    one, other = Worker(4_000, shared=shared, key=Key("a")), Worker(4_000, shared=shared, key=Key("b"))
    await one.send({"messages": chat(40)})
    plans = set(shared.values)
    await other.send({"messages": chat(40)})
    assert len({key for key in shared.values if ":plan:" in key} - plans) == 1


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [("acompletion", "context_length_exceeded", "maximum context length is 1000"),
     ("anthropic_messages", "context_length_exceeded", "prompt is too long: ")],
)  # fmt: skip
async def test_what_cannot_fit_is_refused_in_the_words_of_its_wire(
    kind: str, status: str, words: str
) -> None:
    worker = Worker(1_000)
    with pytest.raises(refused_error()) as caught:
        await worker.send({"messages": [user("word " * 3_000)], "max_tokens": 10}, kind)
    error = caught.value
    assert error.code == "400"
    assert error.to_dict()["code"] == status
    assert error.to_dict()["type"] == "invalid_request_error"
    assert words in error.message
    assert find_overflow(read_body(error.message), 400)
    assert worker.headers["x-rolling-outcome"] == "refused"
    assert worker.hooks.counters.requests["refused"] == 1


async def test_a_fault_of_its_own_lets_the_request_pass(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker(4_000)

    def broken(*_given: Any) -> None:
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr("rolling_chat.gateway.hooks.plan_chat", broken)
    with caplog.at_level(logging.ERROR, "rolling_chat.gateway"):
        assert await worker.send({"messages": chat(60)}) == {"model": "chat", "messages": chat(60)}
    assert worker.hooks.counters.requests["failed_open"] == 1
    assert worker.headers == {"x-rolling-outcome": "failed_open"}
    assert "goes on as it came" in caplog.text


async def test_without_redis_each_worker_plans_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    shared = SharedMemory()
    shared.is_broken = True
    worker = Worker(4_000, shared=shared)
    sent = await worker.send({"messages": chat(60)})
    assert len(sent["messages"]) < 120
    assert "each worker plans by itself" in caplog.text
    assert not worker.hooks.counters.requests["failed_open"]


@pytest.mark.parametrize("value", ["nonsense", {"version": 3}, {"version": 3, "omitted": 7}, [1], 5])
async def test_a_plan_that_nobody_can_read_is_none(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = SharedMemory()
    await Worker(4_000, shared=shared).send({"messages": chat(60)})
    expected = await Worker(4_000).send({"messages": chat(60)})

    async def always(key_list: list[str]) -> dict[str, Any]:
        return dict.fromkeys(key_list, value)

    monkeypatch.setattr(shared, "async_batch_get_cache", always)
    worker = Worker(4_000, shared=shared)
    assert await worker.send({"messages": chat(60)}) == expected
    assert not worker.hooks.counters.requests["failed_open"]


@pytest.mark.parametrize("value", [None, "x", [[]], {"a": 1}, 1.5, 10**9])
async def test_a_plan_that_makes_no_sense_is_none(value: Any) -> None:
    shared = SharedMemory()
    await Worker(2_000, shared=shared).send({"messages": chat(20)}, usage=1_000)
    (key,) = (key for key in shared.values if ":plan:" in key)
    plan = json.loads(shared.values[key])
    for name in plan:
        shared.values[key] = json.dumps({**plan, name: value})
        worker = Worker(2_000, shared=shared)
        await worker.send({"messages": [*chat(20), assistant("Yes."), user("Go on.")]})
        assert worker.headers["x-rolling-outcome"] == "trimmed"


@pytest.mark.parametrize("messages", ["text", [1, 2], [{"role": "assistant", "tool_calls": ["x"]}], {"a": 1}])
async def test_what_is_no_conversation_passes_unread(messages: Any) -> None:
    worker = Worker(100)
    assert (await worker.send({"messages": messages}))["messages"] == messages
    assert worker.hooks.counters.requests["skipped"] == 1


async def test_other_calls_are_left_alone() -> None:
    worker = Worker(100)
    body = {"input": "word " * 1_000}
    assert await worker.send(body, "aembedding") == {"model": "chat", **body}
    assert sum(worker.hooks.counters.requests.values()) == 0


async def test_a_conversation_with_old_function_messages_is_whole_or_refused() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    messages = [SYSTEM, user("Hi."), call, {"role": "function", "name": "f", "content": "x"}]
    assert (await Worker(1_000).send({"messages": messages}))["messages"] == messages
    with pytest.raises(refused_error()):
        await Worker(1_000).send({"messages": [*messages, *chat(20)[1:]]})


async def test_a_later_system_message_stays() -> None:
    rule = {"role": "developer", "content": "Answer in French."}
    messages = chat(60)
    sent = await Worker(4_000).send({"messages": [*messages[:3], rule, *messages[3:]]})
    assert rule in sent["messages"]


async def test_the_reported_count_corrects_the_next_plan() -> None:
    worker = Worker(8_000)
    await worker.send({"messages": chat(5)}, usage=1_234)
    await worker.send({"messages": chat(5)})
    assert worker.headers["x-rolling-tokens"] == "1234"


async def test_what_a_model_taught_reaches_the_other_workers() -> None:
    shared = SharedMemory()
    one, other = Worker(8_000, shared=shared), Worker(8_000, shared=shared)
    await one.send({"messages": chat(5)}, usage=1_234)
    await other.send({"messages": chat(5)})
    assert other.headers["x-rolling-tokens"] == "1234"


async def test_a_stream_without_usage_teaches_nothing() -> None:
    worker = Worker(8_000)
    await worker.send({"messages": chat(5)})
    before = worker.headers["x-rolling-tokens"]
    kwargs = {"litellm_call_id": "call-1", "stream": True}
    await worker.hooks.async_log_success_event(kwargs, {"usage": {"prompt_tokens": 2_000}}, None, None)
    await worker.send({"messages": chat(5)})
    assert worker.headers["x-rolling-tokens"] == before


class RefusedError(Exception):
    """A provider's error, as LiteLLM passes it on."""

    def __init__(self, status_code: int, text: str) -> None:
        super().__init__(text)
        self.status_code = status_code


def _refusal(limit: int) -> Exception:
    return RefusedError(
        400,
        f"This model's maximum context length is {limit} tokens. "
        "However, your messages resulted in 9000 tokens.",
    )


async def test_a_refusal_teaches_the_window() -> None:
    worker = Worker(8_000)
    await worker.refuse({"messages": chat(40)}, _refusal(4_000))
    sent = await worker.send({"messages": chat(40)})
    assert worker.headers["x-rolling-window"] == "4000"
    assert len(sent["messages"]) < 80


async def test_the_usage_of_another_model_teaches_nothing() -> None:
    worker = Worker(8_000)
    await worker.send({"messages": chat(5)})
    before = worker.headers["x-rolling-tokens"]
    kwargs = {"litellm_call_id": "call-1", "litellm_params": {"metadata": {"model_group": "fallback"}}}
    await worker.hooks.async_log_success_event(kwargs, {"usage": {"prompt_tokens": 2_000}}, None, None)
    await worker.send({"messages": chat(5)})
    assert worker.headers["x-rolling-tokens"] == before


async def test_a_refusal_without_numbers_makes_the_same_request_smaller_and_no_other() -> None:
    worker = Worker(8_000)
    await worker.refuse({"messages": chat(40)}, RefusedError(400, "Input is too long for requested model."))
    first = int(worker.headers["x-rolling-tokens"])
    await worker.send({"messages": chat(40)})
    assert int(worker.headers["x-rolling-tokens"]) <= 0.8 * first
    await worker.send({"messages": chat(39)})
    assert worker.headers["x-rolling-window"] == "8000"
    assert int(worker.headers["x-rolling-tokens"]) > 0.8 * first


@pytest.mark.parametrize(
    ("error", "more"),
    [
        (_refusal(200), {}),  # what a message quoted
        (_refusal(9_500), {}),  # less than what is said to be too much
        (RefusedError(400, "maximum context length is 7000 tokens"), {"messages": chat(3)}),
        (_refusal(4_000), {"api_base": "http://127.0.0.1:9"}),  # a server of the client's own
        (_refusal(4_000), {"mock_response": "litellm.ContextWindowExceededError"}),
        (RefusedError(429, "Rate limit: 4000 tokens per minute"), {}),
    ],
)
async def test_a_client_cannot_shrink_the_window_of_others(error: Exception, more: dict[str, Any]) -> None:
    worker = Worker(8_000)
    await worker.refuse({"messages": chat(40)}, error, **more)
    await worker.send({"messages": chat(40)})
    assert worker.headers["x-rolling-window"] == "8000"


async def test_an_answer_that_would_leave_no_room_is_shortened() -> None:
    worker = Worker(8_000)
    sent = await worker.send({"messages": chat(30), "max_tokens": 7_000})
    assert int(sent["max_tokens"]) + int(worker.headers["x-rolling-tokens"]) <= 8_000
    assert worker.headers["x-rolling-max-tokens"] == str(sent["max_tokens"])
    assert sent["max_tokens"] >= 4_000 - 8_000 // 10


async def test_an_answer_that_litellm_asks_for_by_itself_is_shortened_too() -> None:
    worker = Worker(6_000, name="anthropic/claude-sonnet-4-5")
    assert "max_tokens" not in await worker.send({"messages": chat(1)})
    sent = await worker.send({"messages": chat(20)})
    assert 2_000 <= sent["max_tokens"] < 4_096
    assert sent["max_tokens"] + int(worker.headers["x-rolling-tokens"]) <= 6_000


async def test_settings_of_model_team_and_key_come_in_this_order() -> None:
    team = {"rolling_chat": {"max_context_tokens": 5_000}}
    key = Key(team_metadata=team, metadata={"rolling_chat": {"max_context_tokens": 3_000}})
    worker = Worker(8_000, table={"max_context_tokens": 6_000}, key=key)
    for tokens in (3_000, 5_000, 6_000):
        await worker.send({"messages": chat(5)})
        assert worker.headers["x-rolling-window"] == str(tokens)
        key.metadata = {} if tokens == 3_000 else key.metadata
        key.team_metadata = None if tokens == 5_000 else key.team_metadata
    key.metadata = {"rolling_chat": {"enabled": False}}
    assert len((await worker.send({"messages": chat(60)}))["messages"]) == 120


async def test_headers_can_be_switched_off() -> None:
    worker = Worker(8_000, table={"headers": False})
    await worker.send({"messages": chat(2)})
    assert worker.headers == {}


@pytest.mark.parametrize("kind", ["acompletion", "anthropic_messages"])
async def test_a_conversation_with_claude_is_marked_for_its_cache(kind: str) -> None:
    worker = Worker(8_000, name="anthropic/claude-sonnet-4-5")
    messages = chat(3)[1:] if kind == "anthropic_messages" else chat(3)
    body = {"messages": messages, "max_tokens": 100, "tools": [{"name": "f"}], "system": "Be nice."}
    sent = await worker.send(body, kind)
    assert "cache_control" in sent["messages"][-1]["content"][-1]
    assert "cache_control" in sent["tools"][-1]
    own = {**body, "tools": [{"name": "f", "cache_control": {"type": "ephemeral"}}]}
    assert (await worker.send(own, kind))["messages"] == messages
    alone = {"messages": [user("Hi.")], "max_tokens": 100}
    assert (await worker.send(alone, kind))["messages"] == alone["messages"]


async def test_call_fields_that_are_unknown_stay_with_their_call() -> None:
    messages = [SYSTEM, user("Go.")]
    for number in range(12):
        call = {
            "id": f"c{number}", "type": "function",
            "function": {"name": "write", "arguments": '{"text": "' + "word " * 300 + '"}'},
            "extra_content": {"google": {"thought_signature": f"sig{number}"}},
        }  # fmt: skip
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]}, tool(f"c{number}", "done")]
    sent = await Worker(4_000).send({"messages": messages})
    calls = [message for message in sent["messages"] if message.get("tool_calls")]
    assert calls
    assert all(message in messages for message in calls)


async def test_what_two_workers_learn_at_once_adds_up() -> None:
    shared = SharedMemory()
    one, other = Worker(8_000, shared=shared), Worker(8_000, shared=shared)
    await one.send({"messages": chat(5)})
    await other.send({"messages": chat(40)})
    kwargs = {"litellm_call_id": "call-1", "exception": _refusal(4_000)}
    await other.hooks.async_log_failure_event(kwargs, None, None, None)
    await one.answer(1_234)
    third = Worker(8_000, shared=shared)
    await third.send({"messages": chat(5)})
    assert (third.headers["x-rolling-window"], third.headers["x-rolling-tokens"]) == ("4000", "1234")


@pytest.mark.parametrize("limit", [1, 999, 10**9, -5])
async def test_a_window_that_nobody_can_have_learned_is_not_believed(limit: int) -> None:
    shared = SharedMemory()
    await Worker(8_000, shared=shared).send({"messages": chat(5)}, usage=1_234)
    (key,) = (key for key in shared.values if ":model:" in key)
    shared.values[key] = json.dumps({**json.loads(shared.values[key]), "limit": limit})
    worker = Worker(8_000, shared=shared)
    await worker.send({"messages": chat(5)})
    assert worker.headers["x-rolling-window"] == "8000"
