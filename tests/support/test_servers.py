"""The loopback servers answer without a stream as they do with one."""

from __future__ import annotations

import pytest
from anthropic import Anthropic
from anthropic.types import TextBlock, ThinkingBlock, ToolUseBlock
from openai import APIConnectionError, BadRequestError, OpenAI

from tests.support.servers import AnthropicServer, Break, Call, OpenAIServer, Reply

ASKED = [{"role": "user", "content": "what is in a.py?"}]
REPLY = Reply("Let me look.", (Call("read_file", '{"path": "a.py"}'),), reasoning="hm, hm")


def test_openai_answers_in_one_object_with_its_usage() -> None:
    with OpenAIServer([REPLY]).in_thread() as server:
        client = OpenAI(base_url=server.api_base, api_key="sk-any")
        answer = client.chat.completions.create(model="gpt-4o", messages=ASKED)
        tokens = server.requests[0].tokens
    choice = answer.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("Let me look.", "tool_calls")
    assert choice.message.tool_calls[0].function.arguments == '{"path": "a.py"}'
    assert answer.usage.prompt_tokens == tokens > 0
    assert answer.usage.total_tokens == tokens + answer.usage.completion_tokens


def test_openai_refuses_and_tears_off_without_a_stream_too() -> None:
    with OpenAIServer([Break(REPLY)], window=1_000).in_thread() as server:
        client = OpenAI(base_url=server.api_base, api_key="sk-any", max_retries=0)
        with pytest.raises(APIConnectionError):
            client.chat.completions.create(model="gpt-4o", messages=ASKED)
        with pytest.raises(BadRequestError, match="maximum context length is 1000 tokens"):
            client.chat.completions.create(model="gpt-4o", messages=ASKED, max_tokens=1_000)


def test_anthropic_answers_in_blocks_with_its_usage() -> None:
    with AnthropicServer([REPLY]).in_thread() as server:
        client = Anthropic(base_url=server.api_base, api_key="sk-ant-any")
        answer = client.messages.create(model="claude-sonnet-4-5", messages=ASKED, max_tokens=100)
        tokens = server.requests[0].tokens
    thinking, text, call = answer.content
    assert isinstance(thinking, ThinkingBlock)
    assert thinking.thinking.split() == ["hm,", "hm"]
    assert thinking.signature
    assert isinstance(text, TextBlock)
    assert text.text == "Let me look."
    assert isinstance(call, ToolUseBlock)
    assert call.input == {"path": "a.py"}
    assert answer.stop_reason == "tool_use"
    assert answer.usage.input_tokens == tokens > 0
    assert answer.usage.output_tokens > 1
