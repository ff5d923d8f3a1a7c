"""The rolling window for the OpenAI Agents SDK: a filter of each model call's input."""

from __future__ import annotations

from typing import Any

from agents import TResponseInputItem
from agents.run_config import CallModelData, ModelInputData

from rolling_chat.context import ContextConfig
from rolling_chat.integrations.window import Planned, RollingWindow

Items = list[TResponseInputItem]


class RollingContextFilter:
    """Sends what fits the window; the session keeps every item.

        RunConfig(call_model_input_filter=RollingContextFilter("openai/gpt-4.1"))

    An item that it cannot read, such as the model's reasoning, stays with the call or the answer behind it.
    """

    def __init__(self, model: str, config: ContextConfig | None = None) -> None:
        self.window = RollingWindow(model, config or ContextConfig())

    def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the input of one call that fits."""
        instructions = data.model_data.instructions
        groups = _groups(data.model_data.input)
        given = [message for message, _ in groups]
        if instructions:
            given.insert(0, {"role": "system", "content": instructions})
            groups.insert(0, (given[0], []))
        planned = self.window.plan(given, key=str(id(data.agent)))
        sent: Items = []
        for one in planned:
            if one.message["role"] == "system":
                instructions = str(one.message["content"])
            else:
                sent += groups[one.index][1] if one.is_same else _changed(one, groups)
        return ModelInputData(sent, instructions)


def _groups(items: Items) -> list[tuple[dict[str, Any], Items]]:
    """Return the items as messages, each with its items; calls in a row are one message."""
    groups: list[tuple[dict[str, Any], Items]] = []
    waiting: Items = []  # items without a message of their own yet
    for item in items:
        raw: Any = item
        match raw.get("type", "message"):
            case "function_call":
                call = {
                    "id": raw["call_id"],
                    "type": "function",
                    "function": {"name": raw["name"], "arguments": raw["arguments"]},
                }
                if groups and not waiting and groups[-1][0].get("tool_calls"):
                    groups[-1][0]["tool_calls"].append(call)
                    groups[-1][1].append(item)
                else:
                    message = {"role": "assistant", "content": None, "tool_calls": [call]}
                    groups.append((message, [*waiting, item]))
                    waiting = []
            case "function_call_output":
                output = {"role": "tool", "tool_call_id": raw["call_id"], "content": _text(raw["output"])}
                groups.append((output, [*waiting, item]))
                waiting = []
            case "message":
                message = {"role": raw["role"], "content": _text(raw["content"])}
                groups.append((message, [*waiting, item]))
                waiting = []
            case _:
                waiting.append(item)
    if waiting and groups:
        groups[-1][1].extend(waiting)
    return groups


def _changed(planned: Planned, groups: list[tuple[dict[str, Any], Items]]) -> Items:
    """Return the items of a message whose text or arguments were shortened."""
    message: Any = planned.message
    if planned.index < 0:
        return [{"role": message["role"], "content": message["content"]}]
    arguments = {call["id"]: call["function"]["arguments"] for call in message.get("tool_calls") or ()}
    return [_replaced(item, message, arguments) for item in groups[planned.index][1]]


def _replaced(item: Any, message: Any, arguments: dict[str, str]) -> Any:
    match item.get("type", "message"):
        case "function_call":
            return {**item, "arguments": arguments.get(item["call_id"], item["arguments"])}
        case "function_call_output":
            return {**item, "output": message["content"]}
        case "message":
            return {**item, "content": message["content"]}
    return item


def _text(content: Any) -> Any:
    """Return content as OpenAI's chat format has it: text as it is, parts by their text."""
    if not isinstance(content, list):
        return content
    texts = [part.get("text") for part in content]
    return "".join(texts) if all(isinstance(text, str) for text in texts) else content
