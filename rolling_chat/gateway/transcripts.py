"""A request's conversation in the planner's form, and the way back to the client's own messages.

What is not cut goes back exactly as the client sent it. The planner sees copies: without cache marks, which
clients move about; with one text for a list of one; and with the parts that nobody here can read kept in
extras, so that they count and their message stays byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rolling_chat.context_keys import CacheTtl
from rolling_chat.message_validation import normalize_role
from rolling_chat.messages import Json, JsonObject, Message, is_picture
from rolling_chat.providers.cache_marks import mark_messages, mark_tools
from rolling_chat.recognition.kept_messages import Kept

CACHE_MARK = "cache_control"
# The planner changes nothing in a message with extras of this name.
PROTECTED = "thinking_blocks"
# A file in base64 counts for its pages, not for its letters: a page is some 2,000 tokens and 50 KB.
_FILE_SHARE, _LONG_DATA = 24, 1_000
_BASE64 = re.compile(r"(?:data:[^,]{0,200},)?[A-Za-z0-9+/=_\r\n-]*")
_LOOKED_AT = 2_000  # characters at either end of a file
# What is nested deeper is text to the planner: Python's own writer breaks on it.
_DEPTH = 40
# A message with a part of another kind stays: nobody here knows what it would take along.
_KNOWN_PARTS = frozenset(
    {
        "text", "image", "image_url", "input_audio", "audio_url", "video_url", "file", "document", "refusal",
        "thinking", "redacted_thinking", "tool_use", "tool_result", "search_result", "server_tool_use",
        "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
        "bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "mcp_tool_use",
        "mcp_tool_result",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    """One message as the planner sees it, and where the client said it.

    `source` is the index of the client's message, -1 for a system text beside the messages; `blocks` are the
    positions in its content that it was made of, empty for all. One that is not `known` has parts of a kind
    that is unknown here: it stays.
    """

    message: JsonObject
    source: int
    blocks: tuple[int, ...] = ()
    known: bool = True


@dataclass(frozen=True, slots=True)
class Transcript:
    """Hold a whole conversation.

    `rules` are the indexes of what its author set for all that follows. One that is not `readable` has
    messages of a role that is unknown here: nothing of it is dropped.
    """

    said: tuple[Said, ...]
    rules: frozenset[int] = frozenset()
    readable: bool = True

    @property
    def pinned(self) -> frozenset[int]:
        """Return the indexes of what must stay."""
        return self.rules.union(index for index, said in enumerate(self.said) if not said.known)

    @property
    def has_system(self) -> bool:
        """Return whether the first message is the system message."""
        return bool(self.said) and normalize_role(self.said[0].message) == "system"


class Wire(Protocol):
    """A wire format that carries messages."""

    def read(self, data: Mapping[str, Any]) -> Transcript:
        """Read the conversation of a request. Raises ValueError for what is no conversation."""
        ...

    def write(
        self, data: Mapping[str, Any], transcript: Transcript, kept: Sequence[Kept], notice: str
    ) -> dict[str, Any]:
        """Return the fields of the request that carry what is kept, with `notice` after the system text."""
        ...

    def mark(
        self, data: Mapping[str, Any], changed: Mapping[str, Any], *, previous: int, ttl: CacheTtl
    ) -> dict[str, Any]:
        """Return the fields with marks for the prompt cache; `previous` is the client's message that was the
        last one of the request before, -1 for none."""
        ...


def messages_of(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the messages of a request. Raises ValueError for what are none."""
    messages = data["messages"]
    if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
        raise ValueError("messages is no list of objects")
    return messages


def marked_fields(
    data: Mapping[str, Any],
    changed: Mapping[str, Any],
    *,
    previous: int,
    ttl: CacheTtl,
    stable_system: int = 0,
) -> dict[str, Any]:
    """Return the changed fields with marks on messages and tools, as `Wire.mark` has them.

    `stable_system` are the characters of the system message's text that are the client's own.
    """
    given: list[Any] = data["messages"]
    messages: list[Any] = changed.get("messages", given)
    wire = [dict(message) for message in messages]
    last = next((at for at, message in enumerate(messages) if message is given[previous]), None)
    mark_messages(wire, stable_system_chars=stable_system, previous=last if previous >= 0 else None, ttl=ttl)
    tools = data.get("tools")
    marked = {"tools": mark_tools(tools, ttl)} if isinstance(tools, list) and tools else {}
    return {**changed, "messages": wire, **marked}


def plain_content(content: Any) -> Any:
    """Return content as the planner is to see it: unmarked, a lone text as text, files by their size."""
    if not isinstance(content, list | tuple):
        return plain_value(content)
    parts = [_plain_part(part) for part in content]
    if len(parts) == 1 and parts[0].keys() == {"type", "text"} and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def _plain_part(part: Any) -> dict[str, Any]:
    if not isinstance(part, Mapping):
        raise ValueError("a part of a message is no object")
    unmarked = {key: value for key, value in part.items() if key != CACHE_MARK}
    return (
        {key: plain_value(value) for key, value in unmarked.items()}
        if is_picture(part)
        else _by_size(unmarked)
    )


def is_known(content: Any) -> bool:
    """Return whether all parts of a message's content, and of results in it, are of a kind that is known."""
    parts = content if isinstance(content, list | tuple) else ()
    inner = (part.get("content") for part in parts if part.get("type") == "tool_result")
    results = [one for result in inner if isinstance(result, list | tuple) for one in result]
    kinds = [part.get("type") if isinstance(part, Mapping) else None for part in (*parts, *results)]
    return all(isinstance(kind, str) and kind in _KNOWN_PARTS for kind in kinds)


def plain_value(value: Json, depth: int = _DEPTH) -> Json:
    """Return a value in which nothing is nested deeper than `depth`: what is, is its JSON as a text."""
    match value:
        case dict() if depth:
            return {key: plain_value(inner, depth - 1) for key, inner in value.items()}
        case list() if depth:
            return [plain_value(inner, depth - 1) for inner in value]
        case dict() | list():
            return json_text(value)
        case _:
            return value


def _by_size(value: Json, depth: int = _DEPTH) -> Json:
    match value:
        case dict() if depth:
            is_text = value.get("type") == "text"
            return {
                key: _sized(inner)
                if key in {"data", "file_data"} and isinstance(inner, str) and not is_text
                else _by_size(inner, depth - 1)
                for key, inner in value.items()
                if key != CACHE_MARK
            }
        case list() if depth:
            return [_by_size(inner, depth - 1) for inner in value]
        case _:
            return plain_value(value, 0)


def _sized(data: str) -> str:
    if len(data) <= _LONG_DATA:
        return data
    is_file = all(_BASE64.fullmatch(end) for end in (data[:_LOOKED_AT], data[-_LOOKED_AT:]))
    return data[: max(_LONG_DATA, len(data) // _FILE_SHARE)] if is_file else data


def texts_of(content: Any) -> str | None:
    """Return a system text as one string; None if it is more than text."""
    if isinstance(content, str) or content is None:
        return content or ""
    if not isinstance(content, list | tuple):
        return None
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
    return "\n\n".join(filter(None, texts)) if all(isinstance(text, str) for text in texts) else None


def cut_content(message: Message, original: Any) -> Any:
    """Return the content of a message that was cut, with the client's own parts where they are left."""
    content = message.content
    if isinstance(content, str):
        return content
    others = [part for part in original if part.get("type") != "text"] if isinstance(original, list) else []
    if sum(part.get("type") != "text" for part in content) != len(others):
        others = [part for part in others if not is_picture(part)]
    left = iter(others)
    return [dict(part) if part.get("type") == "text" else next(left) for part in content]


def json_text(value: Json) -> str:
    """Return a value as JSON; what is too deep for Python's own writer as text of about that length."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except RecursionError:
        return "".join(_written(value))


def _written(value: Json) -> Iterator[str]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as table:
                yield "{}"
                for key, inner in table.items():
                    waiting += (inner, str(key))
            case list() as values:
                yield "[" + "," * len(values) + "]"
                waiting += values
            case one:
                yield json.dumps(one, ensure_ascii=False, default=str)


def json_size(value: Json) -> int:
    """Return the length of a value as JSON, in bytes."""
    return len(json_text(value).encode("utf-8", "replace"))
