"""Provide the rolling window for frameworks with message formats of their own."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rolling_chat.context import ContextConfig, CountMemo, Pins, PromptReport, build_final_prompt
from rolling_chat.messages import JsonObject, is_picture
from rolling_chat.recognition.fingerprints import Recognizer
from rolling_chat.recognition.kept_messages import kept_messages, notice_of
from rolling_chat.recognition.plan_memory import PlanMemory

Parts = str | Sequence[Any]
"""Content: a text, or a list of texts and other values."""
SIGNED = "thinking_blocks"
"""The field for content that the model signed: nothing in such a message is shortened."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One message to send, in OpenAI's format; `index` is that of the given message, -1 for a new one.

    `is_same` means that it is sent as it was given.
    """

    index: int
    message: Mapping[str, Any]
    is_same: bool

    def arguments(self, call_id: str, otherwise: Any) -> Any:
        """Return the arguments of one of its calls as JSON text; `otherwise` for an unknown call."""
        calls = self.message.get("tool_calls") or ()
        return next((call["function"]["arguments"] for call in calls if call["id"] == call_id), otherwise)

    def cut(self, parts: Parts) -> tuple[str, list[Any]]:
        """Return the remaining text of its content, and the non-text `parts` if they remain."""
        content, others = self.message["content"] or "", _other_parts(parts)
        if isinstance(content, str):
            return content, []
        texts = [part["text"] for part in content if part["type"] == "text"]
        return "\n\n".join(texts), others if len(content) - len(texts) == len(others) else []


@dataclass(frozen=True, slots=True)
class Fitted:
    """The messages to send; `notice` says what was omitted, to be appended to the system text."""

    messages: tuple[Planned, ...]
    notice: str


@dataclass(slots=True)
class RollingWindow:
    """A planner that makes the requests of conversations fit the model's window.

    A conversation is recognized by its first messages. It keeps its plan, and the beginning of its prompt
    does not change, even if other conversations use the same agent. `report` is that of the newest request.
    """

    model: str
    config: ContextConfig = field(default_factory=ContextConfig)
    report: PromptReport | None = None
    _recognizer: Recognizer = field(default_factory=Recognizer)
    _plans: PlanMemory = field(default_factory=PlanMemory)
    _memo: CountMemo = field(default_factory=CountMemo)

    def fit(self, system: Any, messages: Sequence[JsonObject], tools: Sequence[JsonObject] = ()) -> Fitted:
        """Return the messages to send, in order. Raises ContextOverflowError if nothing fits.

        `system` is the text before the messages. A system message among them is kept.
        """
        system_messages: list[JsonObject] = [{"role": "system", "content": system or ""}]
        branch = self._recognizer.branch([*system_messages, *messages])
        known = self._plans.longest(branch, branch.ends())
        pinned = (index for index, one in enumerate(branch.messages) if index and one.role == "system")
        final = build_final_prompt(
            branch.messages, self.config, tools=list(tools) or None, model=self.model, memo=self._memo,
            plan=self._plans.get(branch.prefixes[known]) if known else None, pins=Pins(frozenset(pinned)),
        )  # fmt: skip
        self._plans.put(branch.prefixes[-1], final.plan, after=branch.prefixes[known])
        self.report = final.report
        planned = (
            Planned(max(-1, one.index - 1), one.message.to_dict(), not one.is_changed)
            for one in kept_messages(final, 1, len(branch.messages))
        )
        return Fitted(tuple(planned), notice_of(branch.messages, final))


def answer(text: str | None, calls: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """Return a model's answer in OpenAI's format; a call is its id, its tool's name and its arguments."""
    tool_calls = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {
        "role": "assistant",
        "content": text or None,
        **({"tool_calls": tool_calls} if tool_calls else {}),
    }


def content_of(parts: Parts) -> Any:
    """Return content in OpenAI's format: texts, unchanged pictures, and other parts by their size."""
    if not _other_parts(parts):
        return parts if isinstance(parts, str) else "\n\n".join(parts)
    return [_part(one) for one in parts]


def _other_parts(parts: Parts) -> list[Any]:
    return [] if isinstance(parts, str) else [part for part in parts if not isinstance(part, str)]


def _part(part: Any) -> JsonObject:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return part if isinstance(part, dict) and is_picture(part) else _file(str(part))


def _file(written: str) -> JsonObject:
    """Represent a file by a size that corresponds to its pages, not its bytes."""
    return {"type": "file", "data": written[: max(1_000, len(written) // 24)]}


def picture(kind: str, data: bytes) -> JsonObject:
    """Return a picture in OpenAI's format."""
    url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def result(call_id: str, content: Any) -> dict[str, Any]:
    """Return a tool result in OpenAI's format."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}
