"""The rolling window for pydantic-ai: a capability that looks at each request before it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, cast

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext

from rolling_chat.context import ContextConfig
from rolling_chat.integrations.window import Planned, RollingWindow

_Place = tuple[int, int]
"""The index of a message, and that of its part; -1 for all of it."""


class RollingContext(AbstractCapability[Any]):
    """Sends what fits the window; the agent's history keeps every message.

        Agent(model, capabilities=[RollingContext("openai/gpt-4.1")])

    `model` is the model's name, by which its window and its tokenizer are known. A history processor would
    not do: what it leaves out is gone from the history, too.
    """

    def __init__(self, model: str, config: ContextConfig | None = None) -> None:
        self.window = RollingWindow(model, config or ContextConfig())

    async def before_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002  # the interface has it
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """Leave in a request what fits."""
        request_context.messages = self._fitted(request_context.messages)
        return request_context

    def _fitted(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        given, places = _flattened(messages)
        requests = (one for one in reversed(messages) if isinstance(one, ModelRequest))
        instructions = next((one.instructions for one in requests), None)
        if instructions and (not given or given[0]["role"] != "system"):
            given, places = [{"role": "system", "content": instructions}, *given], [(-1, -1), *places]
        planned = self.window.plan(given, key=_conversation(messages))
        kept = [(places[one.index] if one.index >= 0 else (-1, -1), one) for one in planned]
        # instructions that nothing was added to go their own way
        kept = [
            pair
            for pair in kept
            if pair[1].message["role"] != "system" or pair[1].message["content"] != instructions
        ]
        sent: list[ModelMessage] = []
        for index, group in groupby(kept, key=lambda pair: pair[0][0]):
            ones = list(group)
            sent += _added(ones) if index < 0 else [_rebuilt(messages[index], ones)]
        return sent


def _flattened(messages: Sequence[ModelMessage]) -> tuple[list[dict[str, Any]], list[_Place]]:
    """Return the messages in OpenAI's format, a request's parts one by one, and where each comes from."""
    given, places = list[dict[str, Any]](), list[_Place]()
    for index, message in enumerate(messages):
        if isinstance(message, ModelResponse):
            given.append(_response(message))
            places.append((index, -1))
            continue
        for at, part in enumerate(message.parts):
            given.append(_request_part(part))
            places.append((index, at))
    return given, places


def _response(message: ModelResponse) -> dict[str, Any]:
    calls = [
        {
            "id": part.tool_call_id,
            "type": "function",
            "function": {"name": part.tool_name, "arguments": part.args_as_json_str()},
        }
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
    return {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}


def _request_part(part: Any) -> dict[str, Any]:
    match part:
        case SystemPromptPart(content=text):
            return {"role": "system", "content": text}
        case UserPromptPart(content=str(text)):
            return {"role": "user", "content": text}
        case ToolReturnPart():
            text = part.model_response_str()
            return {"role": "tool", "tool_call_id": part.tool_call_id, "content": text}
    return {"role": "user", "content": str(getattr(part, "content", part))}


def _rebuilt(message: ModelMessage, kept: list[tuple[_Place, Planned]]) -> ModelMessage:
    """Return a message with the parts that are sent, those that were shortened with their new text."""
    if isinstance(message, ModelResponse):
        one = kept[0][1]
        return message if one.is_same else replace(message, parts=_shortened_calls(message, one))
    parts = [
        message.parts[at]
        if one.is_same
        else replace(cast(Any, message.parts[at]), content=one.message["content"])
        for (_, at), one in kept
    ]
    return message if parts == list(message.parts) else replace(message, parts=parts)


def _shortened_calls(message: ModelResponse, one: Planned) -> list[Any]:
    arguments = {call["id"]: call["function"]["arguments"] for call in one.message.get("tool_calls", ())}
    return [
        replace(part, args=arguments[part.tool_call_id])
        if isinstance(part, ToolCallPart) and part.tool_call_id in arguments
        else part
        for part in message.parts
    ]


def _added(ones: list[tuple[_Place, Planned]]) -> list[ModelMessage]:
    """Return messages that the plan added: the notice of what left, or a placeholder."""
    return [
        ModelRequest([SystemPromptPart(str(one.message["content"]))])
        if one.message["role"] == "system"
        else ModelRequest([UserPromptPart(str(one.message["content"]))])
        for _, one in ones
    ]


def _conversation(messages: Sequence[ModelMessage]) -> str:
    return next((one.conversation_id for one in messages if one.conversation_id), "") or ""
