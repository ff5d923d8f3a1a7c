"""Provide the rolling window for pydantic-ai, as a capability that checks each request before it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from pydantic_ai import messages as msg
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext

from rolling_chat.context import ContextConfig
from rolling_chat.integrations.window import Planned, RollingWindow, answer, content_of, result


class RollingContext(AbstractCapability[Any]):
    """A capability that sends what fits the window; the agent's history keeps every message.

        Agent(model, capabilities=[RollingContext("openai/gpt-4.1")])

    `model` is the model's name, which determines its window and tokenizer. (A history processor would also
    remove omitted messages from the history.)
    """

    def __init__(self, model: str, config: ContextConfig | None = None) -> None:
        self.window = RollingWindow(model, config or ContextConfig())

    async def before_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002  # part of the interface
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """Reduce a request to what fits."""
        request_context.messages = self._fitted(request_context.messages)
        return request_context

    def _fitted(self, messages: list[msg.ModelMessage]) -> list[msg.ModelMessage]:
        # messages in OpenAI's format, with the indexes of their original message and part
        given = [
            (_message(part), index, part_index)
            for index, one in enumerate(messages)
            for part_index, part in _units_of(one)
        ]
        requests = (one for one in reversed(messages) if isinstance(one, msg.ModelRequest))
        instructions = next((one.instructions for one in requests), None)
        fitted = self.window.fit(instructions, [message for message, _, _ in given])
        notice = [msg.SystemPromptPart(fitted.notice)] if fitted.notice else []
        sent: list[msg.ModelMessage] = [msg.ModelRequest(notice)] if notice else []
        for index, group in groupby(
            fitted.messages, lambda one: given[one.index][1] if one.index >= 0 else -1
        ):
            kept = [(one, given[one.index][2]) for one in group]
            sent.append(_rebuilt(messages[index], kept) if index >= 0 else _bridge(kept[0][0]))
        return sent


def _units_of(message: msg.ModelMessage) -> list[tuple[int, Any]]:
    """Return what becomes a separate message: each part of a request, with its index, or a whole response."""
    return list(enumerate(message.parts)) if isinstance(message, msg.ModelRequest) else [(0, message)]


def _message(part: Any) -> dict[str, Any]:
    match part:
        case msg.ModelResponse(parts=parts):
            calls = [one for one in parts if isinstance(one, msg.ToolCallPart)]
            text = "".join(one.content for one in parts if isinstance(one, msg.TextPart))
            return answer(text, [(one.tool_call_id, one.tool_name, one.args_as_json_str()) for one in calls])
        case msg.SystemPromptPart(content=text):
            return {"role": "system", "content": text}
        case msg.ToolReturnPart():
            return result(part.tool_call_id, part.model_response_str())
        case msg.RetryPromptPart(tool_name=str()):
            return result(part.tool_call_id, part.model_response())
        case msg.UserPromptPart(content=content):
            return {"role": "user", "content": content_of(content)}
    return {"role": "user", "content": str(getattr(part, "content", part))}


def _bridge(planned: Planned) -> msg.ModelMessage:
    return msg.ModelRequest([msg.UserPromptPart(str(planned.message["content"]))])


def _rebuilt(message: msg.ModelMessage, kept: Sequence[tuple[Planned, int]]) -> msg.ModelMessage:
    """Return a message with the parts that are sent, shortened if necessary."""
    if isinstance(message, msg.ModelResponse):
        one = kept[0][0]
        return message if one.is_same else replace(message, parts=[_shortened(p, one) for p in message.parts])
    parts = [
        message.parts[index] if one.is_same else _shortened(message.parts[index], one) for one, index in kept
    ]
    return message if parts == list(message.parts) else replace(message, parts=parts)


def _shortened(part: Any, planned: Planned) -> Any:
    if isinstance(part, msg.ToolCallPart):
        return replace(part, args=planned.arguments(part.tool_call_id, part.args))
    if planned.message["role"] == "assistant":
        return part
    text, others = planned.cut(part.content if isinstance(part, msg.UserPromptPart) else "")
    return replace(part, content=[text, *others] if others else text)
