"""The rolling window in a real agent of the OpenAI Agents SDK."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.integrations.conversations import MODEL, TURNS, WINDOW, log_of

pytest.importorskip("agents", reason="openai-agents is not installed")

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)

from rolling_chat.context import ContextConfig, count_tokens
from rolling_chat.integrations.openai_agents import RollingContextFilter


class Scripted(Model):
    """Thinks and calls the tool once a turn, then answers; keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[list[Any]] = []
        self.instructions: list[str | None] = []

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        self.sent.append(list(input))
        self.instructions.append(system_instructions)
        last = input[-1]
        if last.get("type") == "function_call_output":
            text = ResponseOutputText(text="Seen.", type="output_text", annotations=[])
            output: list[Any] = [
                ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
            ]
        else:
            number = int(str(last["content"]).split()[-1])
            thought = ResponseReasoningItem(
                id=f"rs-{number}", summary=[], type="reasoning", encrypted_content="opaque"
            )
            call = ResponseFunctionToolCall(
                arguments=json.dumps({"number": number}), call_id=f"call-{number}", name="read_log",
                type="function_call",
            )  # fmt: skip
            output = [thought, call]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise AssertionError("nothing is streamed here")


@function_tool
def read_log(number: int) -> str:
    """Read a log."""
    return log_of(number)


async def test_every_call_fits_and_reasoning_goes_with_its_call() -> None:
    model = Scripted()
    rolling = RollingContextFilter(MODEL, ContextConfig(max_context_tokens=WINDOW))
    agent = Agent(name="reader", instructions="Be brief.", model=model, tools=[read_log])
    items: list[Any] = []
    for number in range(TURNS):
        items.append({"role": "user", "content": f"What is in log {number}"})
        config = RunConfig(call_model_input_filter=rolling, tracing_disabled=True)
        items = (await Runner.run(agent, items, run_config=config)).to_input_list()
    outputs = [item for item in items if item.get("type") == "function_call_output"]
    assert [item["output"] for item in outputs] == [log_of(number) for number in range(TURNS)]
    for sent in model.sent:
        assert sum(count_tokens(json.dumps(item), MODEL) for item in sent) < WINDOW
        calls = {item["call_id"] for item in sent if item.get("type") == "function_call"}
        assert {one["call_id"] for one in sent if one.get("type") == "function_call_output"} == calls or (
            sent[-1].get("role") == "user"
        )
        thoughts = {item["id"] for item in sent if item.get("type") == "reasoning"}
        assert thoughts == {f"rs-{call.removeprefix('call-')}" for call in calls}
    assert log_of(TURNS - 1) in [item.get("output") for item in model.sent[-1]]
    assert len(model.sent[-1]) < len(items)
    assert str(model.instructions[-1]).startswith("Be brief.")
    assert "[conversation truncated" in str(model.instructions[-1])
