"""Provide the rolling window for the OpenAI Agents SDK, as a filter of each model call's input."""

from __future__ import annotations

from itertools import chain
from typing import Any

from agents.run_config import CallModelData, ModelInputData

from rolling_chat.context import ContextConfig
from rolling_chat.integrations.window import Planned, RollingWindow, answer, content_of, result
from rolling_chat.recognition.kept_messages import with_notice

_Group = tuple[dict[str, Any], list[Any]]
"""A message in OpenAI's chat format, and the items from which it was made."""


class RollingContextFilter:
    """A filter that sends what fits the window; the session keeps every item.

        RunConfig(call_model_input_filter=RollingContextFilter("openai/gpt-4.1"))

    `model` is the model's name, which determines its window and tokenizer. An item of an unknown kind, such
    as the model's reasoning, stays with the call or answer that follows it.
    """

    def __init__(self, model: str, config: ContextConfig | None = None) -> None:
        self.window = RollingWindow(model, config or ContextConfig())

    def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the part of a call's input that fits."""
        instructions = data.model_data.instructions
        groups = _groups(data.model_data.input)
        fitted = self.window.fit(instructions, [message for message, _ in groups])
        sent = chain.from_iterable(_items(one, groups) for one in fitted.messages)
        return ModelInputData(list(sent), with_notice(instructions, fitted.notice))


def _groups(items: list[Any]) -> list[_Group]:
    """Group items into messages; consecutive calls become one message."""
    groups: list[_Group] = []
    waiting: list[Any] = []  # items that do not have a message yet
    for item in items:
        message = _message(item)
        if message is None:
            waiting.append(item)
        elif message.get("tool_calls") and groups and not waiting and groups[-1][0].get("tool_calls"):
            groups[-1][0]["tool_calls"] += message["tool_calls"]
            groups[-1][1].append(item)
        else:
            groups.append((message, [*waiting, item]))
            waiting = []
    if waiting and groups:
        groups[-1][1].extend(waiting)
    return groups


def _message(item: Any) -> dict[str, Any] | None:
    match item.get("type", "message"):
        case "function_call":
            return answer(None, [(item["call_id"], item["name"], item["arguments"])])
        case "function_call_output":
            return result(item["call_id"], content_of(_texts(item["output"])))
        case "message":
            return {"role": item["role"], "content": content_of(_texts(item["content"]))}
    return None


def _items(planned: Planned, groups: list[_Group]) -> list[Any]:
    """Return the items of a message, with shortened text or arguments if necessary."""
    if planned.index < 0:
        return [dict(planned.message)]
    items = groups[planned.index][1]
    return items if planned.is_same else [_shortened(item, planned) for item in items]


def _shortened(item: Any, planned: Planned) -> Any:
    match item.get("type", "message"):
        case "function_call":
            return {**item, "arguments": planned.arguments(item["call_id"], item["arguments"])}
        case "function_call_output":
            return {**item, "output": _shortened_content(planned, item["output"])}
        case "message":
            return {**item, "content": _shortened_content(planned, item["content"])}
    return item


def _texts(content: Any) -> Any:
    """Return content with text parts as strings."""
    return content if isinstance(content, str) else [part.get("text", part) for part in content]


def _shortened_content(planned: Planned, content: Any) -> Any:
    text, others = planned.cut(_texts(content))
    return [{"type": "input_text", "text": text}, *others] if others else text
