"""OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rolling_chat.context_keys import CacheTtl
from rolling_chat.gateway.transcripts import (
    CACHE_MARK,
    PROTECTED,
    Said,
    Transcript,
    cut_content,
    is_known,
    marked_fields,
    messages_of,
    plain_content,
    plain_value,
    texts_of,
)
from rolling_chat.messages import JsonObject, Message
from rolling_chat.recognition.kept_messages import Kept, with_notice

_SYSTEM = frozenset({"system", "developer"})
_ROLES = _SYSTEM | {"user", "assistant", "tool"}
_CALL_FIELDS = frozenset({"id", "type", "function", "index"})
_FUNCTION_FIELDS = frozenset({"name", "arguments"})


class ChatWire:
    """Read and write `messages` of chat completions."""

    def read(self, data: Mapping[str, Any]) -> Transcript:
        """Read the conversation; a later system message stays where it is."""
        messages = messages_of(data)
        said = tuple(
            Said(_copy(message, index), index, known=is_known(message.get("content")))
            for index, message in enumerate(messages)
        )
        rules = (index for index, message in enumerate(messages) if index and message.get("role") in _SYSTEM)
        return Transcript(said, frozenset(rules), all(map(_is_readable, messages)))

    def write(
        self, data: Mapping[str, Any], transcript: Transcript, kept: Sequence[Kept], notice: str
    ) -> dict[str, Any]:
        """Return `messages` with what is kept."""
        given: list[dict[str, Any]] = data["messages"]
        written: list[dict[str, Any]] = []
        if transcript.has_system:
            first = given[0]
            content = with_notice(first.get("content"), notice)
            written.append({**first, "content": content} if notice else first)
        elif notice:
            written.append({"role": "system", "content": notice})
        for one in kept:
            if one.index < 0:
                written.append(one.message.to_dict())
            elif one.is_changed:
                written.append(_patched(given[transcript.said[one.index].source], one.message))
            else:
                written.append(given[transcript.said[one.index].source])
        return {"messages": written}

    def mark(
        self, data: Mapping[str, Any], changed: Mapping[str, Any], *, previous: int, ttl: CacheTtl
    ) -> dict[str, Any]:
        """Return messages and tools with marks; what was added to the system text comes after its mark."""
        first = data["messages"][0]
        system = first.get("content") if first.get("role") in _SYSTEM else ""
        stable = len(system) if isinstance(system, str) else 0
        return marked_fields(data, changed, previous=previous, ttl=ttl, stable_system=stable)


def _copy(message: Mapping[str, Any], index: int) -> JsonObject:
    role = message.get("role")
    copy = {
        key: value if key == "content" else plain_value(value)
        for key, value in message.items()
        if key != CACHE_MARK
    }
    if role in _SYSTEM and index == 0:
        texts = texts_of(message.get("content"))
        return {
            **copy,
            "role": "system",
            "content": plain_content(message.get("content")) if texts is None else texts,
        }
    if "content" in copy:
        copy["content"] = plain_content(copy["content"])
    protected = [part for call in copy.get("tool_calls") or () for part in _unknown_of(call)]
    if protected:
        copy[PROTECTED] = [*(copy.get(PROTECTED) or ()), *protected]
    return copy


def _unknown_of(call: Any) -> list[Any]:
    """What of a call is not the format's own: signatures, calls of other kinds."""
    if not isinstance(call, Mapping):
        raise ValueError("a tool call is no object")
    function = call.get("function")
    rest = {key: value for key, value in call.items() if key not in _CALL_FIELDS}
    if isinstance(function, Mapping):
        rest.update({key: value for key, value in function.items() if key not in _FUNCTION_FIELDS})
    return [rest] if rest else []


def _is_readable(message: Mapping[str, Any]) -> bool:
    return message.get("role") in _ROLES and not message.get("function_call")


def _patched(original: Mapping[str, Any], cut: Message) -> dict[str, Any]:
    """The client's own message with what the planner cut in it, and nothing else, changed."""
    calls = original.get("tool_calls")
    if not calls:
        return {**original, "content": cut_content(cut, original.get("content"))}
    return {
        **original,
        "tool_calls": [
            {**call, "function": {**call["function"], "arguments": new.arguments}}
            for call, new in zip(calls, cut.tool_calls, strict=True)
        ],
    }
