"""The rolling window in a real agent of Strands."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.integrations.conversations import TURNS, WINDOW, log_of
from tests.support.pictures import png

pytest.importorskip("strands", reason="strands-agents is not installed")

from strands import Agent, tool
from strands.models import Model
from strands.types.exceptions import ContextWindowOverflowException

from rolling_chat.context import ContextConfig, ContextOverflowError, count_tokens
from rolling_chat.integrations.strands import RollingConversationManager

MODEL = "openai/gpt-4o"  # whose pictures are small
PICTURE = {"image": {"format": "png", "source": {"bytes": png(64, 64)}}}


class Scripted(Model):
    """Thinks and calls the tool once a turn, then answers; refuses what is over `window`, keeps the rest."""

    def __init__(self, window: int = WINDOW) -> None:
        self.window = window
        self.sent: list[list[Any]] = []
        self.told: list[Any] = []

    def update_config(self, **_: Any) -> None:
        raise AssertionError("nothing is configured here")

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is structured here")

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **more: Any
    ) -> AsyncGenerator[Any]:
        if size(messages) > self.window:
            raise ContextWindowOverflowException("too long")
        self.sent.append(messages)
        self.told.append(more.get("system_prompt_content") or system_prompt)
        last = messages[-1]["content"]
        yield {"messageStart": {"role": "assistant"}}
        if "toolResult" in last[0]:
            yield {"contentBlockDelta": {"delta": {"text": "Seen."}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}
            return
        number = int(last[0]["text"].split()[-1])
        for part in ({"text": f"Thought {number}."}, {"signature": f"signed {number}"}):
            yield {"contentBlockDelta": {"delta": {"reasoningContent": part}}}
        yield {"contentBlockStop": {}}
        use = {"name": "read_log", "toolUseId": f"call-{number}"}
        yield {"contentBlockStart": {"start": {"toolUse": use}}}
        yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps({"number": number})}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use"}}


@tool
def read_log(number: int) -> str:
    """Read a log."""
    return log_of(number)


def size(messages: list[Any]) -> int:
    return sum(count_tokens(json.dumps(one["content"], default=lambda _: ""), MODEL) for one in messages)


def blocks(messages: list[Any], kind: str) -> list[Any]:
    return [block[kind] for message in messages for block in message["content"] if kind in block]


def make_agent(model: Scripted, window: int = WINDOW) -> Agent:
    manager = RollingConversationManager(MODEL, ContextConfig(max_context_tokens=window))
    return Agent(
        model=model, tools=[read_log], system_prompt="Be brief.", conversation_manager=manager,
        callback_handler=None,
    )  # fmt: skip


async def test_every_request_fits_and_the_agent_keeps_every_message() -> None:
    model = Scripted()
    agent = make_agent(model)
    for number in range(TURNS):
        await agent.invoke_async([{"text": f"What is in log {number}"}, PICTURE])
    assert len(agent.messages) == 4 * TURNS
    results = blocks(agent.messages, "toolResult")
    assert [one["content"][0]["text"] for one in results] == [log_of(number) for number in range(TURNS)]
    assert len(model.sent) == 2 * TURNS
    for sent in model.sent:
        used = [one["toolUseId"] for one in blocks(sent, "toolUse")]
        assert [one["toolUseId"] for one in blocks(sent, "toolResult")] == used
        signed = [one["reasoningText"]["signature"] for one in blocks(sent, "reasoningContent")]
        assert signed == [f"signed {call.removeprefix('call-')}" for call in used]
        assert all(one == PICTURE["image"] for one in blocks(sent, "image"))
    assert len(model.sent[-1]) < 4 * TURNS
    assert blocks(model.sent[-1], "toolResult")[-1]["content"][0]["text"] == log_of(TURNS - 1)
    told = "".join(block["text"] for block in model.told[-1])
    assert told.startswith("Be brief.")
    assert "[conversation truncated" in told


async def test_after_a_refusal_less_is_sent_and_finally_the_error_is_raised() -> None:
    model = Scripted(window=WINDOW // 2)
    agent = make_agent(model, 2 * WINDOW)
    for number in range(TURNS):
        await agent.invoke_async(f"What is in log {number}")
    assert max(map(size, model.sent)) <= WINDOW // 2
    model.window = 10
    with pytest.raises(ContextOverflowError):
        await agent.invoke_async("What is in log 1")
