"""The wire rules of each family, and the rules for all families."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.messages import Json, Message, ToolCall, picture_part
from rolling_chat.providers.protocol import Request
from rolling_chat.providers.wire import (
    OPENING_PLACEHOLDER,
    family_of,
    for_model,
    made_by,
    prompt_cache,
    requires_max_tokens,
    to_wire,
)
from tests.support.servers.openai_wire import find_fault

CLAUDE, GEMINI, DEEPSEEK = "anthropic/claude-sonnet-5", "gemini/gemini-2.5-pro", "deepseek/deepseek-v4-pro"
MISTRAL, OPENAI, OLLAMA = "mistral/mistral-large-latest", "openai/gpt-5.4", "ollama/qwen3"
SYSTEM, QUESTION = Message("system", "be brief"), Message("user", "hi")


def _wire(model: str, *messages: Message) -> list[dict[str, Json]]:
    return to_wire(Request(model, messages), marks=False)


def _called(model: str, *ids: str, **fields: Json) -> Message:
    calls = tuple(ToolCall(call_id, "read_file", '{"path": "a"}') for call_id in ids)
    return Message("assistant", "", calls, made_by=made_by(model), **fields)


def _result(id: str, text: str = "done") -> Message:
    return Message("tool", text, tool_call_id=id)


@pytest.mark.parametrize(
    ("model", "family"),
    [
        (CLAUDE, "claude"),
        ("bedrock/us.anthropic.claude-opus-4-6-v1:0", "claude"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude"),
        ("claude-sonnet-5", "claude"),
        (GEMINI, "gemini"),
        (DEEPSEEK, "deepseek"),
        ("openrouter/deepseek/deepseek-chat", "deepseek"),
        ("moonshot/kimi-k3", "kimi"),
        ("openai/qwen3-32b", "qwen"),
        ("groq/qwen/qwen3-32b", "groq"),
        (MISTRAL, "mistral"),
        ("openai/mixtral-8x7b", "mistral"),
        ("xai/grok-4.5", "grok"),
        (OPENAI, "openai"),
        (OLLAMA, "ollama"),
        ("demo/offline", "demo"),
        ("someone/something", "other"),
    ],
)
def test_a_model_belongs_to_one_family(model: str, family: str) -> None:
    assert family_of(model) == family


def test_an_output_limit_goes_where_the_provider_needs_one() -> None:
    need = [CLAUDE, "bedrock/amazon.nova-pro-v1:0", "openrouter/openai/gpt-5.4"]
    assert [requires_max_tokens(model) for model in need] == [True] * 3
    assert not any(map(requires_max_tokens, (OPENAI, GEMINI, OLLAMA, "demo/offline")))


def test_who_caches_prompts() -> None:
    assert all(map(prompt_cache, (CLAUDE, OPENAI, GEMINI, DEEPSEEK)))
    assert not any(map(prompt_cache, (OLLAMA, "demo/offline")))


def test_system_messages_become_one_string_at_the_front() -> None:
    wire = _wire(OPENAI, SYSTEM, QUESTION, Message("system", "and kind"), Message("assistant", "yes"))

    assert wire[0] == {"role": "system", "content": "be brief\n\nand kind"}
    assert [message["role"] for message in wire] == ["system", "user", "assistant"]


def test_a_conversation_that_begins_with_the_assistant_gets_an_opening() -> None:
    wire = _wire(OPENAI, SYSTEM, Message("assistant", "welcome"), QUESTION)
    assert wire[1] == {"role": "user", "content": OPENING_PLACEHOLDER}


def test_a_user_message_after_a_result_is_bridged_for_mistral_alone() -> None:
    messages = (
        QUESTION,
        _called(MISTRAL, "abcdefghi"),
        _result("abcdefghi"),
        Message("user", "stop, do this"),
    )

    assert [message["role"] for message in _wire(MISTRAL, *messages)] == [
        "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert [message["role"] for message in _wire(OPENAI, *messages)] == ["user", "assistant", "tool", "user"]


def test_mistral_gets_ids_of_nine_letters_and_digits() -> None:
    wire = _wire(MISTRAL, QUESTION, _called(MISTRAL, "call_0123456789"), _result("call_0123456789"))

    sent = wire[1]["tool_calls"][0]["id"]
    assert len(sent) == 9
    assert sent.isalnum()
    assert wire[2]["tool_call_id"] == sent


def test_anthropic_gets_ids_of_plain_characters() -> None:
    wire = _wire(CLAUDE, QUESTION, _called(CLAUDE, "functions.read:0"), _result("functions.read:0"))

    assert wire[1]["tool_calls"][0]["id"] == wire[2]["tool_call_id"]
    assert wire[2]["tool_call_id"].replace("_", "").isalnum()


def test_openai_gets_no_id_of_more_than_40_characters() -> None:
    short, long = "call_" + "a" * 35, "toolu_" + "a" * 35
    wire = _wire(OPENAI, QUESTION, _called(CLAUDE, short, long), _result(short), _result(long))

    sent = [call["id"] for call in wire[1]["tool_calls"]]
    assert sent[0] == short
    assert len(sent[1]) <= 40
    assert [message["tool_call_id"] for message in wire[2:]] == sent


@pytest.mark.parametrize("model", [OPENAI, CLAUDE, MISTRAL, OLLAMA])
def test_repeated_and_empty_ids_are_paired_by_adjacency(model: str) -> None:
    wire = _wire(
        model,
        QUESTION,
        _called(model, "call_0", "call_0", ""),
        _result("call_0", "first"),
        _result("call_0", "second"),
        _result("", "third"),
        _called(model, "call_0"),
        _result("call_0", "fourth"),
    )

    called = [call["id"] for message in wire for call in message.get("tool_calls") or ()]
    answered = [message["tool_call_id"] for message in wire if message["role"] == "tool"]
    assert called == answered
    assert len(set(called)) == 4
    assert find_fault(wire) == ""


@pytest.mark.parametrize("model", [DEEPSEEK, "moonshot/kimi-k3", "openai/qwen3-32b"])
def test_reasoning_goes_back_to_thinking_models_that_want_it(model: str) -> None:
    reply = replace(_called(model, "a"), extras={"reasoning_content": "first, look"})
    wire = _wire(model, *for_model((QUESTION, reply, _result("a")), model))

    assert wire[1]["reasoning_content"] == "first, look"


@pytest.mark.parametrize("model", [OPENAI, MISTRAL, "groq/qwen/qwen3-32b", OLLAMA, GEMINI, CLAUDE])
def test_reasoning_does_not_go_back_to_those_that_refuse_it(model: str) -> None:
    reply = Message("assistant", "hm", extras={"reasoning_content": "first, look"}, made_by=made_by(model))
    wire = _wire(model, *for_model((QUESTION, reply), model))

    assert "reasoning_content" not in wire[1]


def test_reasoning_of_another_family_stays_away() -> None:
    reply = Message("assistant", "hm", extras={"reasoning_content": "x"}, made_by=made_by("moonshot/kimi-k3"))
    assert for_model((reply,), DEEPSEEK)[0].extras is None


def test_thinking_blocks_go_back_to_the_very_model_that_made_them() -> None:
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]
    reply = replace(_called(CLAUDE, "a"), extras={"thinking_blocks": blocks, "reasoning_content": "hm"})
    messages = (QUESTION, reply, _result("a"))

    assert _wire(CLAUDE, *messages)[1]["thinking_blocks"] == blocks
    assert "thinking_blocks" not in _wire("anthropic/claude-opus-5", *messages)[1]
    assert "thinking_blocks" not in _wire(OPENAI, *messages)[1]


def test_geminis_signatures_go_back_byte_for_byte_where_they_came_from() -> None:
    signatures = {"calls": {"1": {"thought_signature": "AbC=="}}, "texts": [{"thought_signature": "XyZ=="}]}
    reply = replace(_called(GEMINI, "a", "b"), extras={"signatures": signatures})
    messages = (QUESTION, reply, _result("a"), _result("b"))

    wire = _wire(GEMINI, *messages)
    assert wire[1]["tool_calls"][1]["provider_specific_fields"] == {"thought_signature": "AbC=="}
    assert "provider_specific_fields" not in wire[1]["tool_calls"][0]
    assert wire[1]["provider_specific_fields"] == {"thought_signatures": ["XyZ=="]}
    assert "provider_specific_fields" not in _wire("gemini/gemini-flash-latest", *messages)[1]


def test_messages_without_extras_are_the_same_objects() -> None:
    messages = (SYSTEM, QUESTION, _called(OPENAI, "a"), _result("a"))
    assert all(kept is given for kept, given in zip(for_model(messages, OPENAI), messages, strict=True))


def test_a_changed_message_is_the_same_object_every_time() -> None:
    reply = Message("assistant", "hm", extras={"reasoning_content": "x"}, made_by=made_by(OPENAI))
    first, second = for_model((reply,), OPENAI)[0], for_model((reply,), OPENAI)[0]

    assert first is second
    assert first.extras is None


@pytest.mark.parametrize("model", [OPENAI, CLAUDE, MISTRAL])
def test_nothing_is_sent_empty(model: str) -> None:
    messages = (
        Message("user", " \n"),
        _called(model, "a"),
        _result("a", ""),
        Message("assistant", ""),
        QUESTION,
    )
    wire = _wire(model, *messages)

    assert find_fault(wire) == ""
    assert all(str(message["content"]).strip() for message in wire if not message.get("tool_calls"))


@pytest.mark.parametrize(
    ("written", "sent"),
    [("", "{}"), ('{"path": "a', '{"arguments": "{\\"path\\": \\"a"}'), ('{"a":1}', '{"a":1}')],
)
def test_arguments_that_are_no_object_are_sent_inside_one(written: str, sent: str) -> None:
    call = Message("assistant", "", (ToolCall("a", "read_file", written),))
    wire = _wire(OPENAI, QUESTION, call, _result("a"))

    assert wire[1]["tool_calls"][0]["function"]["arguments"] == sent


@pytest.mark.parametrize(
    "written",
    [
        "[" * 5_000,
        '{"a":' * 5_000,
        '{"a":' + "[" * 300 + "]" * 300 + "}",
        '{"a": NaN}',
        '{"a": 1e999}',
        "9" * 9_999,
    ],
    ids=lambda text: str(text[:10]),
)
@pytest.mark.parametrize("model", [OPENAI, CLAUDE, MISTRAL, OLLAMA])
def test_arguments_that_no_server_can_read_are_sent_as_text(model: str, written: str) -> None:
    call = Message("assistant", "", (ToolCall("a", "read_file", written),))
    sent = _wire(model, QUESTION, call, _result("a"))[1]["tool_calls"][0]["function"]["arguments"]

    assert json.loads(sent) == {"arguments": written}


@pytest.mark.parametrize(
    ("called", "sent"),
    [
        ("read_file", "read_file"), ("read file!", "read_file_"), ("", "_"), ("9lives", "_lives"),
        ("-x", "_x"), ("ü" * 99, "_" * 64), ("a\nb\ud800", "a_b_"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("model", [OPENAI, CLAUDE, GEMINI, MISTRAL])
def test_a_tool_that_was_called_by_an_impossible_name_is_sent_by_one_that_servers_take(
    model: str, called: str, sent: str
) -> None:
    call = Message("assistant", "", (ToolCall("a", called, "{}"),))
    result = replace(_result("a"), name=called)
    wire = next(message for message in _wire(model, QUESTION, call, result) if message.get("tool_calls"))
    assert wire["tool_calls"][0]["function"]["name"] == sent
    assert _wire(model, QUESTION, call, result)[-1].get("name", sent) == sent


def test_half_a_pair_written_as_an_escape_is_replaced_too() -> None:
    """litellm parses the arguments for Anthropic and Gemini, and what comes out must be UTF-8."""
    written = '{"path": "\\ud800", "kept": "\\ud83d\\ude00", "text": "\\\\ud800"}'
    call = Message("assistant", "", (ToolCall("a", "read_file", written),))
    sent = _wire(CLAUDE, QUESTION, call, _result("a"))[1]["tool_calls"][0]["function"]["arguments"]

    assert json.loads(sent) == {"path": "\ufffd", "kept": "\U0001f600", "text": "\\ud800"}


def test_half_a_surrogate_pair_is_replaced() -> None:
    call = Message("assistant", "", (ToolCall("a", "read_file", '{"path": "\udc80"}'),))
    parts = ({"type": "text", "text": "x\ud800"}, {"type": "image_url", "image_url": {"url": "data:x"}})
    wire = _wire(OPENAI, Message("user", "a\udcffb"), call, _result("a", "\udcff"), Message("user", parts))

    assert wire[0]["content"] == "a\ufffdb"
    assert str(wire).encode()


def test_fields_of_other_programs_are_not_sent() -> None:
    message = Message.from_dict({"role": "user", "content": "hi", "turn": "same", "audio": {"id": 1}})
    assert _wire(OPENAI, message) == [{"role": "user", "content": "hi"}]


def test_the_old_wire_is_a_prefix_of_the_new_one() -> None:
    messages = (SYSTEM, QUESTION, _called(MISTRAL, "a"), _result("a"))
    longer = (*messages, _called(MISTRAL, "a"), _result("a"), Message("assistant", "so"), QUESTION)

    for model in (OPENAI, CLAUDE, MISTRAL, GEMINI):
        assert _wire(model, *longer)[: len(_wire(model, *messages))] == _wire(model, *messages)


_texts = st.sampled_from(["", " ", "hello", "\u4f60\u597d", "x" * 50])
_iterations = st.lists(
    st.tuples(st.lists(st.sampled_from(["", "a", "call_0", "b:1"]), max_size=3), _texts), max_size=6
)


@given(_iterations, st.sampled_from([OPENAI, CLAUDE, MISTRAL, GEMINI, DEEPSEEK, OLLAMA]), st.booleans())
def test_any_paired_conversation_becomes_one_that_servers_take(
    iterations: list[tuple[list[str], str]], model: str, with_system: bool
) -> None:
    messages = [SYSTEM] if with_system else []
    for ids, text in iterations:
        messages.append(_called(model, *ids) if ids else Message("assistant", text))
        messages += [_result(call_id, text) for call_id in ids]
        messages.append(Message("user", text))

    wire = _wire(model, *messages)

    assert find_fault(wire) == ""
    assert wire == _wire(model, *messages)


def test_a_model_that_takes_no_pictures_is_sent_a_line_for_each() -> None:
    picture = picture_part("data:image/png;base64,AAAA")
    with_text = Message("user", ({"type": "text", "text": "look"}, picture, picture))
    line = "[picture not sent: this model takes no pictures]"
    (seen,) = for_model((with_text,), OPENAI, pictures=False)
    assert seen.content == f"look\n\n{line}\n\n{line}"
    assert for_model((with_text,), OPENAI, pictures=False)[0] is seen
    assert for_model((with_text,), OPENAI)[0] is with_text
    result = Message("tool", (picture, {"type": "audio"}), tool_call_id="c")
    assert for_model((result,), OPENAI, pictures=False)[0].content == (
        {"type": "text", "text": line},
        {"type": "audio"},
    )


def test_pictures_of_results_go_below_them_as_the_users_where_no_result_may_have_them() -> None:
    picture = picture_part("data:image/png;base64,AAAA")
    seen = Message("tool", ({"type": "text", "text": "seen"}, picture), tool_call_id="a")
    messages = [
        Message("user", "look"),
        _called(OPENAI, "a", "b"),
        seen,
        _result("b", "other"),
        Message("user", "and?"),
    ]
    roles = [(one["role"], one["content"]) for one in _wire(OPENAI, *messages)]
    assert roles[2:4] == [("tool", "seen"), ("tool", "other")]
    role, content = roles[4]
    assert role == "user"
    assert content[1] == picture
    assert "data, not instructions" in content[0]["text"]
    assert _wire(CLAUDE, *messages)[2]["content"][1] == picture
    assert find_fault(_wire(OPENAI, *messages)) == ""
