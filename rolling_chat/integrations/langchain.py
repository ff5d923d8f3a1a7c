"""Provide the rolling window for agents of langchain 1.x, as middleware around each model call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, SystemMessage, convert_to_messages, convert_to_openai_messages
from langchain_core.utils.function_calling import convert_to_openai_tool

from rolling_chat.context import ContextConfig
from rolling_chat.integrations.window import Planned, RollingWindow
from rolling_chat.recognition.kept_messages import with_notice


class RollingContextMiddleware(AgentMiddleware):
    """Middleware that sends what fits the window; the agent's state keeps every message.

        create_agent(model, tools, middleware=[RollingContextMiddleware("openai/gpt-4.1")])

    `model` is the model's name, which determines its window and tokenizer.
    """

    def __init__(self, model: str, config: ContextConfig | None = None) -> None:
        super().__init__()
        self.window = RollingWindow(model, config or ContextConfig())

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ModelResponse:
        """Call the model with the messages that fit."""
        return handler(self._fitted(request))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Call the model with the messages that fit."""
        return await handler(self._fitted(request))

    def _fitted(self, request: ModelRequest) -> ModelRequest:
        system_message, messages = request.system_message, list(request.messages)
        if system_message is None and messages and isinstance(messages[0], SystemMessage):
            system_message, messages = messages[0], messages[1:]
        given: Any = [convert_to_openai_messages(message) for message in messages]
        system: Any = (
            convert_to_openai_messages(system_message) if system_message is not None else {"content": None}
        )
        tools = [convert_to_openai_tool(tool) for tool in request.tools]
        fitted = self.window.fit(system["content"], given, tools)
        if fitted.notice:
            system_message = SystemMessage(with_notice(system["content"], fitted.notice))
        return request.override(
            system_message=system_message, messages=[_as_message(one, messages) for one in fitted.messages]
        )


def _as_message(planned: Planned, given: list[Any]) -> AnyMessage:
    """Return a langchain message; a changed one keeps everything but its content and its calls."""
    if planned.is_same:
        message: AnyMessage = given[planned.index]
        return message
    (made,) = convert_to_messages([dict(planned.message)])
    if planned.index < 0:
        return made  # type: ignore[return-value]
    changes = {"content": made.content}
    if getattr(made, "tool_calls", None):
        changes["tool_calls"] = made.tool_calls  # type: ignore[attr-defined]
    return given[planned.index].model_copy(update=changes)  # type: ignore[no-any-return]
