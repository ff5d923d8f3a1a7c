"""Anthropic's messages.

One of its messages may be several of the planner's: results of tools, and what the user said after them.
What is kept of them goes back into one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rolling_chat.context.turns import SAME_TURN, TURN
from rolling_chat.context_keys import CacheTtl
from rolling_chat.gateway.transcripts import (
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
from rolling_chat.messages import Json, JsonObject, Message
from rolling_chat.providers.cache_marks import mark_tools
from rolling_chat.recognition.kept_messages import Kept, with_notice


class AnthropicWire:
    """Read and write `system` and `messages` of Anthropic's API."""

    def read(self, data: Mapping[str, Any]) -> Transcript:
        """Read the conversation, the system text first."""
        messages = messages_of(data)
        said: list[Said] = []
        if data.get("system"):
            texts = texts_of(data["system"])
            content = plain_content(data["system"]) if texts is None else texts
            said.append(Said({"role": "system", "content": content}, -1))
        for source, message in enumerate(messages):
            said.extend(_said(message, source))
        readable = all(message.get("role") in {"user", "assistant"} for message in messages)
        return Transcript(tuple(said), readable=readable)

    def write(
        self, data: Mapping[str, Any], transcript: Transcript, kept: Sequence[Kept], notice: str
    ) -> dict[str, Any]:
        """Return `messages` and, with a notice, `system`."""
        given: list[dict[str, Any]] = data["messages"]
        written: list[Mapping[str, Any]] = []

        def source_of(one: Kept) -> int:
            return transcript.said[one.index].source if one.index >= 0 else -1 - id(one)

        for source, group in groupby(kept, source_of):
            parts = list(group)
            if source < 0:
                written.extend({"role": one.message.role, "content": one.message.text} for one in parts)
            else:
                written.append(_message(given[source], transcript, parts))
        changed: dict[str, Any] = {"messages": written}
        if notice:
            changed["system"] = with_notice(data.get("system"), notice)
        return changed

    def mark(
        self, data: Mapping[str, Any], changed: Mapping[str, Any], *, previous: int, ttl: CacheTtl
    ) -> dict[str, Any]:
        """Return the fields with marks; what was added to the system text comes after its mark."""
        marked = marked_fields(data, changed, previous=previous, ttl=ttl)
        own, whole = data.get("system"), changed.get("system", data.get("system"))
        if own:
            blocks = [{"type": "text", "text": own}] if isinstance(own, str) else own
            added = [] if whole is own else [{"type": "text", "text": _added(own, whole)}]
            marked["system"] = [*mark_tools(list(blocks), ttl), *added]
        return marked


def _added(own: Any, whole: Any) -> str:
    """The notice that was put behind the client's own system text."""
    return str(whole[len(own) :].lstrip("\n") if isinstance(own, str) else whole[-1]["text"])


def _said(message: Mapping[str, Any], source: int) -> Iterator[Said]:
    role, content = str(message.get("role")), message.get("content")
    if isinstance(content, str) or content is None:
        yield Said({"role": role, "content": content or ""}, source)
        return
    if not isinstance(content, list) or not all(isinstance(block, Mapping) for block in content):
        raise ValueError("the content of a message is no list of blocks")
    if role == "assistant":
        yield Said(_answer(content), source, known=is_known(content))
        return
    same = {TURN: SAME_TURN} if any(map(_is_result, content)) else {}
    for is_result, group in groupby(enumerate(content), lambda pair: _is_result(pair[1])):
        pairs = list(group)
        if is_result:
            for position, block in pairs:
                yield Said(_result(block), source, (position,), is_known([block]))
        else:
            blocks = [block for _, block in pairs]
            said = {"role": role, "content": plain_content(blocks), **same}
            yield Said(said, source, tuple(position for position, _ in pairs), is_known(blocks))


def _is_result(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "tool_result"


def _result(block: Mapping[str, Any]) -> JsonObject:
    content = plain_content(block.get("content"))
    return {"role": "tool", "content": content or "", "tool_call_id": str(block.get("tool_use_id"))}


def _answer(content: Sequence[Mapping[str, Any]]) -> JsonObject:
    texts = [block for block in content if block.get("type") == "text"]
    calls = [block for block in content if block.get("type") == "tool_use"]
    others = [block for block in content if block.get("type") not in {"text", "tool_use"}]
    answer: dict[str, Any] = {"role": "assistant", "content": plain_content(texts) if texts else None}
    if calls:
        answer["tool_calls"] = [
            {
                "id": str(block.get("id")),
                "type": "function",
                "function": {
                    "name": str(block.get("name")),
                    "arguments": _arguments(block.get("input")),
                },
            }
            for block in calls
        ]
    unknown = [plain_content([block])[0] for block in others]
    if unknown:
        answer[PROTECTED] = unknown
    return answer


def _arguments(given: Json) -> str:
    try:
        return json.dumps(given, ensure_ascii=False)
    except RecursionError:
        return json.dumps(plain_value(given), ensure_ascii=False)


def _message(original: Mapping[str, Any], transcript: Transcript, parts: Sequence[Kept]) -> Mapping[str, Any]:
    """The client's own message with what is kept of it; itself if that is all."""
    content: Any = original.get("content")
    if not transcript.said[parts[0].index].blocks:
        return _patched(original, parts[0].message) if parts[0].is_changed else original
    blocks: list[Any] = []
    for one in parts:
        own = [content[place] for place in transcript.said[one.index].blocks]
        if not one.is_changed:
            blocks.extend(own)
        elif _is_result(own[0]):
            blocks.append({**own[0], "content": cut_content(one.message, own[0].get("content"))})
        else:
            blocks.extend(_as_blocks(cut_content(one.message, own)))
    return original if blocks == content else {**original, "content": blocks}


def _patched(original: Mapping[str, Any], cut: Message) -> dict[str, Any]:
    """An answer with shorter arguments, or a shorter text."""
    if not cut.tool_calls:
        return {**original, "content": cut.content}
    arguments = iter(cut.tool_calls)
    return {
        **original,
        "content": [
            {**block, "input": json.loads(next(arguments).arguments)}
            if block.get("type") == "tool_use"
            else block
            for block in original["content"]
        ],
    }


def _as_blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
