"""The rolling window for agents of langchain 1.x: middleware around each call of the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, SystemMessage, convert_to_messages, convert_to_openai_messages
from langchain_core.utils.function_calling import convert_to_openai_tool

from rolling_chat.context import ContextConfig
from rolling_chat.integrations.window import Planned, RollingWindow


class RollingContextMiddleware(AgentMiddleware):
    """Sends what fits the window; the agent's state keeps every message.

        create_agent(model, tools, middleware=[RollingContextMiddleware("openai/gpt-4.1")])

    `model` is the model's name, by which its window and its tokenizer are known.
    """

    def __init__(self, model: str, config: ContextConfig | None = None) -> None:
        super().__init__()
        self.window = RollingWindow(model, config or ContextConfig())

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse:
        """Call the model with what fits."""
        return handler(self._fitted(request))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Call the model with what fits."""
        return await handler(self._fitted(request))

    def _fitted(self, request: ModelRequest) -> ModelRequest:
        system = [request.system_message] if request.system_message is not None else []
        whole = [*system, *request.messages]
        given = [convert_to_openai_messages(message) for message in whole]
        tools = [convert_to_openai_tool(tool) for tool in request.tools]
        planned = self.window.plan(given, tools, _thread(request))  # type: ignore[arg-type]
        sent = [_as_message(one, whole) for one in planned]
        if sent and isinstance(sent[0], SystemMessage):
            return request.override(system_message=sent[0], messages=sent[1:])
        return request.override(messages=sent)


def _as_message(planned: Planned, whole: list[Any]) -> AnyMessage:
    """Return a message as langchain has it; a changed one keeps all but its content and its calls."""
    if planned.is_same:
        message: AnyMessage = whole[planned.index]
        return message
    (made,) = convert_to_messages([dict(planned.message)])
    if planned.index < 0:
        return made  # type: ignore[return-value]
    changes = {"content": made.content}
    if getattr(made, "tool_calls", None):
        changes["tool_calls"] = made.tool_calls  # type: ignore[attr-defined]
    return whole[planned.index].model_copy(update=changes)  # type: ignore[no-any-return]


def _thread(request: ModelRequest) -> str:
    """Return the id of the conversation, where langgraph knows one."""
    config = getattr(request.runtime, "config", None) or {}
    return str(config.get("configurable", {}).get("thread_id", ""))
