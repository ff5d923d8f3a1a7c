"""The rolling window in a real agent of pydantic-ai."""

from __future__ import annotations

import pytest

from tests.integrations.conversations import MODEL, TURNS, WINDOW, log_of

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from rolling_chat.context import ContextConfig, count_tokens
from rolling_chat.integrations.pydantic_ai import RollingContext

SENT: list[list[ModelMessage]] = []


def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    SENT.append(messages)
    part = messages[-1].parts[-1]
    if isinstance(part, ToolReturnPart):
        return ModelResponse([TextPart("Seen.")])
    assert isinstance(part, UserPromptPart)
    number = int(str(part.content).split()[-1])
    return ModelResponse([ToolCallPart("read_log", {"number": number}, f"call-{number}")])


def texts(messages: list[ModelMessage]) -> list[str]:
    return [
        str(getattr(part, "content", getattr(part, "args", ""))) for one in messages for part in one.parts
    ]


@pytest.mark.parametrize("told_by", ["instructions", "system_prompt"])
async def test_every_request_fits_and_the_history_keeps_every_message(told_by: str) -> None:
    SENT.clear()
    rolling = RollingContext(MODEL, ContextConfig(max_context_tokens=WINDOW))
    agent = Agent(FunctionModel(answer), capabilities=[rolling], **{told_by: "Be brief."})

    @agent.tool_plain
    def read_log(number: int) -> str:
        """Read a log."""
        return log_of(number)

    history: list[ModelMessage] = []
    for number in range(TURNS):
        result = await agent.run(f"What is in log {number}", message_history=history)
        history = result.all_messages()
    returned = [part for one in history for part in one.parts if isinstance(part, ToolReturnPart)]
    assert [part.content for part in returned] == [log_of(number) for number in range(TURNS)]
    for sent in SENT:
        assert sum(count_tokens(text, MODEL) for text in texts(sent)) < WINDOW
        calls = {part.tool_call_id for one in sent for part in one.parts if isinstance(part, ToolCallPart)}
        returns = {
            part.tool_call_id for one in sent for part in one.parts if isinstance(part, ToolReturnPart)
        }
        assert returns == calls
    assert log_of(TURNS - 1) in texts(SENT[-1])
    assert any("omitted" in text for text in texts(SENT[-1]))
    assert isinstance(SENT[-1][0], ModelRequest)
