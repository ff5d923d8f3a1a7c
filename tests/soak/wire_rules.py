"""What a strict provider refuses of a request's body, in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.prompt_rules import broken_openai_rules
from tests.support.servers.openai_wire import find_fault

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def broken_openai_body(body: Mapping[str, Any]) -> list[str]:
    """Everything wrong with a request for a chat completion."""
    problems = list(broken_openai_rules(body["messages"], wire=True))
    problems += _arguments(body["messages"])
    problems += _tools([tool.get("function") or {} for tool in body.get("tools") or ()], "parameters")
    room = body.get("max_tokens", body.get("max_completion_tokens", 1))
    if not isinstance(room, int) or room < 1:
        problems.append(f"max_tokens: {room!r}")
    if not problems and (fault := find_fault(body["messages"])):
        problems.append(fault)
    return problems


def broken_anthropic_body(body: Mapping[str, Any]) -> list[str]:
    """Everything wrong with a request for a message, beyond pairs and signatures, which the server keeps."""
    return [
        *_system(body.get("system")),
        *_tools(body.get("tools") or (), "input_schema"),
        *_turns(body["messages"]),
        *([] if isinstance(body.get("max_tokens"), int) and body["max_tokens"] > 0 else ["max_tokens"]),
    ]


def _arguments(messages: list[dict[str, Any]]) -> Iterator[str]:
    for place, message in enumerate(messages):
        for call in message.get("tool_calls") or ():
            try:
                value = json.loads(call["function"]["arguments"])
            except ValueError:
                value = None
            if not isinstance(value, dict):
                yield f"{place}: arguments that are no JSON object"


def _tools(tools: Any, schema: str) -> Iterator[str]:
    names = [str(tool.get("name")) for tool in tools]
    if len(set(names)) < len(names):
        yield f"tools: two of one name in {names}"
    for tool, name in zip(tools, names, strict=True):
        if not _NAME.fullmatch(name):
            yield f"tools: the name {name!r}"
        if not isinstance(tool.get(schema), dict) or tool[schema].get("type") != "object":
            yield f"tools: {name} has no {schema} of an object"


def _system(system: Any) -> Iterator[str]:
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system or []
    for block in blocks:
        if block.get("type") != "text" or not str(block.get("text", "")).strip():
            yield "system: an empty block"


def _turns(messages: list[dict[str, Any]]) -> Iterator[str]:
    for place, message in enumerate(messages):
        if message.get("role") not in {"user", "assistant"}:
            yield f"messages.{place}: the role {message.get('role')!r}"
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        kinds = [block.get("type") for block in blocks]
        if not any(kinds):
            yield f"messages.{place}: no content"
        if "tool_result" in kinds and kinds[: kinds.count("tool_result")] != ["tool_result"] * kinds.count(
            "tool_result"
        ):
            yield f"messages.{place}: results after other blocks"
        for block in blocks:
            if block.get("type") == "tool_use":
                yield from _use(place, block)
    if messages and messages[-1].get("role") != "user":
        yield "messages: the last one is not the user's"


def _use(place: int, block: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(block.get("input"), dict):
        yield f"messages.{place}: the input of a call is no object"
    if not _NAME.fullmatch(str(block.get("id"))):
        yield f"messages.{place}: the id {block.get('id')!r}"
    if not _NAME.fullmatch(str(block.get("name"))):
        yield f"messages.{place}: the name {block.get('name')!r}"
