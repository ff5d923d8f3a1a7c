"""Where Anthropic's cache marks are set: four at most."""

from __future__ import annotations

from rolling_chat.messages import Json, Message, ToolCall
from rolling_chat.providers.protocol import Request
from rolling_chat.providers.wire import to_wire, tools_to_wire

CLAUDE = "anthropic/claude-sonnet-5"
TOOLS = tuple({"type": "function", "function": {"name": name, "parameters": {}}} for name in ("read", "list"))
SYSTEM, QUESTION = Message("system", "stable part|changing part"), Message("user", "hi")


def _iterations(count: int) -> list[Message]:
    found: list[Message] = []
    for number in range(count):
        found.append(Message("assistant", "", (ToolCall(f"c{number}", "read", "{}"),)))
        found.append(Message("tool", "done", tool_call_id=f"c{number}"))
    return found


def _marked(wire: list[dict[str, Json]]) -> list[int]:
    return [place for place, message in enumerate(wire) if "cache_control" in str(message)]


def test_the_last_tool_the_stable_system_text_and_the_last_message_are_marked() -> None:
    request = Request(CLAUDE, (SYSTEM, QUESTION), TOOLS, stable_system_chars=len("stable part|"))
    wire = to_wire(request)

    assert ["cache_control" in tool for tool in tools_to_wire(request)] == [False, True]
    assert wire[0]["content"] == [
        {"type": "text", "text": "stable part|", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "changing part"},
    ]
    assert wire[1]["content"] == [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]


def test_without_a_stable_part_the_whole_system_text_is_marked() -> None:
    wire = to_wire(Request(CLAUDE, (SYSTEM, QUESTION)))
    assert [part["text"] for part in wire[0]["content"]] == [SYSTEM.text]


def test_the_last_message_of_the_request_before_is_marked_when_it_is_far_back() -> None:
    messages = (SYSTEM, QUESTION, *_iterations(8))
    wire = to_wire(Request(CLAUDE, messages, TOOLS, previous_length=2))

    assert _marked(wire) == [0, 1, len(wire) - 1]


def test_it_is_not_marked_when_it_is_near() -> None:
    messages = (SYSTEM, QUESTION, *_iterations(7))
    wire = to_wire(Request(CLAUDE, messages, TOOLS, previous_length=2))

    assert _marked(wire) == [0, len(wire) - 1]


def test_a_result_is_marked_as_a_whole() -> None:
    wire = to_wire(Request(CLAUDE, (SYSTEM, QUESTION, *_iterations(1))))
    assert wire[-1]["cache_control"] == {"type": "ephemeral"}
    assert wire[-1]["content"] == "done"


def test_the_messages_put_in_for_the_wire_do_not_shift_the_mark() -> None:
    messages = (SYSTEM, Message("assistant", "welcome"), QUESTION, *_iterations(9))
    wire = to_wire(Request(CLAUDE, messages, previous_length=3))

    assert wire[3]["content"][0]["text"] == "hi"
    assert 3 in _marked(wire)


def test_a_length_beyond_the_prompt_marks_nothing_more() -> None:
    wire = to_wire(Request(CLAUDE, (SYSTEM, QUESTION), previous_length=50))
    assert _marked(wire) == [0, 1]


def test_other_families_get_no_marks_and_one_system_string() -> None:
    for model in ("openai/gpt-5.4", "gemini/gemini-2.5-pro", "mistral/mistral-large-latest", "ollama/qwen3"):
        request = Request(model, (SYSTEM, QUESTION), TOOLS, stable_system_chars=5)
        assert _marked(to_wire(request)) == []
        assert to_wire(request)[0]["content"] == SYSTEM.text
        assert not any("cache_control" in tool for tool in tools_to_wire(request))


def test_marks_for_an_hour_say_so_and_all_of_them_do() -> None:
    messages = (Message("system", "be kind"), Message("user", "hi"))
    tools = ({"type": "function", "function": {"name": "f"}},)
    request = Request(CLAUDE, messages, tools, cache_ttl="1h")
    marked = [tools_to_wire(request)[-1], *(message["content"][-1] for message in to_wire(request))]
    assert [one["cache_control"] for one in marked] == [{"type": "ephemeral", "ttl": "1h"}] * 3
