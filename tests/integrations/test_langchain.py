"""The rolling window in a real agent of langchain."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integrations.conversations import MODEL, TURNS, WINDOW, log_of

pytest.importorskip("langchain.agents", reason="langchain is not installed")

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult

from rolling_chat.context import ContextConfig, count_tokens
from rolling_chat.integrations.langchain import RollingContextMiddleware


class Scripted(BaseChatModel):
    """Calls the tool once a turn, then answers; keeps what it was sent."""

    sent: list[list[BaseMessage]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Scripted:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.sent.append(messages)
        if isinstance(messages[-1], ToolMessage):
            answer = AIMessage("Seen.")
        else:
            number = int(str(messages[-1].content).split()[-1])
            call = {"name": "read_log", "args": {"number": number}, "id": f"call-{number}"}
            answer = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def read_log(number: int) -> str:
    """Read a log."""
    return log_of(number)


async def test_every_request_fits_and_the_state_keeps_every_message() -> None:
    model = Scripted(sent=[])
    middleware = RollingContextMiddleware(MODEL, ContextConfig(max_context_tokens=WINDOW))
    agent = create_agent(model, [read_log], system_prompt="Be brief.", middleware=[middleware])
    messages: list[Any] = []
    for number in range(TURNS):
        messages.append({"role": "user", "content": f"What is in log {number}"})
        messages = (await agent.ainvoke({"messages": messages}))["messages"]
    assert len(messages) == 4 * TURNS
    assert messages[2].content == log_of(0)
    assert len(model.sent) == 2 * TURNS
    for sent in model.sent:
        given = convert_to_openai_messages(sent)
        assert sum(count_tokens(str(one), MODEL) for one in given) < WINDOW
        answered = {call["id"] for one in sent if isinstance(one, AIMessage) for call in one.tool_calls}
        assert {one.tool_call_id for one in sent if isinstance(one, ToolMessage)} <= answered
    assert str(model.sent[-1][0].content).startswith("Be brief.")
    assert log_of(TURNS - 1) in [one.content for one in model.sent[-1]]
    assert len(model.sent[-1]) < 4 * TURNS
    # what stays as it was is the very message, with its id
    kept = {one.id for one in messages}
    assert {one.id for one in model.sent[-1][1:] if one.id} <= kept
