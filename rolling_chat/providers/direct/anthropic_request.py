"""Build requests to Anthropic's messages endpoint exactly as litellm does, without importing it.

The body is the same JSON as litellm's, with the same key order, so that the provider's prompt cache works for
requests sent either way. Nothing that litellm would fetch, repair or look up in its table is reimplemented
here: such a request gets no body and is sent by litellm.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rolling_chat.lenient_json import read_json
from rolling_chat.messages import Json, JsonObject

_HOST = "https://api.anthropic.com"
_PATH = "/v1/messages"
_VERSION = "2023-06-01"
# the prefix of a subscription token, which replaces a key, and the beta header that it requires
_SUBSCRIPTION = "sk-ant-oat"
_SUBSCRIPTION_BETA = "oauth-2025-04-20"

_KNOWN_ARGUMENTS = frozenset(
    {"model", "messages", "tools", "tool_choice", "reasoning_effort", "max_tokens", "api_base", "api_key"}
)
_TOOL_CHOICES = ("auto", "none")
_COMPLETION_MODELS = frozenset({"claude-2", "claude-instant-1"})  # these use another endpoint
# Claude models that accept a thinking budget, according to litellm's table
_BUDGETED = frozenset(
    {
        "claude-haiku-4-5", "claude-haiku-4-5-20251001",
        "claude-opus-4-5", "claude-opus-4-5-20251101",
        "claude-sonnet-4-5", "claude-sonnet-4-5-20250929",
    }
)  # fmt: skip
# Claude models that accept an effort level and choose the budget themselves
_ADAPTIVE_BELOW_XHIGH = frozenset({"claude-opus-4-6", "claude-opus-4-6-20260205", "claude-sonnet-4-6"})
_ADAPTIVE = _ADAPTIVE_BELOW_XHIGH | {
    "claude-fable-5", "claude-fable-5-1", "claude-haiku-5-5", "claude-mythos-5", "claude-mythos-5-1",
    "claude-mythos-preview", "claude-opus-4-7", "claude-opus-4-7-20260416", "claude-opus-4-8",
    "claude-opus-5", "claude-opus-5-5", "claude-sonnet-5", "claude-sonnet-5-5",
}  # fmt: skip
_BUDGETS = {"minimal": 1024, "low": 1024, "medium": 2048, "high": 4096, "xhigh": 8192, "max": 16384}
_ANSWER_BESIDE_BUDGET = 4096  # output tokens beyond the thinking budget, if no limit is given
_EFFORTS = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}

_EMPTY_TEXT = "[System: Empty message content sanitised to satisfy protocol]"
_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_PICTURE = re.compile(r"data:image/[a-z0-9.+-]+")
_SCHEMA_KEYS = frozenset({"type", "properties", "additionalProperties", "required", "$defs", "strict"})
_OLD_DEFINITIONS = frozenset({"definitions", "components"})  # litellm inlines these
_DUMMY_TOOL: JsonObject = {
    "name": "dummy_tool",
    "input_schema": {"type": "object", "properties": {}},
    "type": "custom",
    "description": "This is a dummy tool call",
}
_ANOTHER_PROVIDERS_THINKING = "litellm_encrypted_reasoning:"


class _NotUnderstoodError(Exception):
    """Raised for a part of a request whose conversion by litellm is not certain."""


def anthropic_url(arguments: Mapping[str, Any]) -> str:
    """Return the URL of a request."""
    base = str(arguments.get("api_base") or _HOST)
    return base if base.endswith(_PATH) else f"{base}{_PATH}"


def anthropic_headers(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a request that has a body."""
    headers = {
        "anthropic-version": _VERSION,
        "accept": "application/json",
        "content-type": "application/json",
    }
    key = str(arguments["api_key"])
    if not key.startswith(_SUBSCRIPTION):
        return {**headers, "x-api-key": key}
    return {
        **headers,
        "authorization": f"Bearer {key}",
        "anthropic-dangerous-direct-browser-access": "true",
        "anthropic-beta": _SUBSCRIPTION_BETA,
    }


def anthropic_body(arguments: Mapping[str, Any], *, output_limit: int = 0) -> JsonObject | None:
    """Return the body that litellm would send for `arguments`; None if that is not certain.

    `output_limit` is the model's output limit according to the catalog, 0 if unknown: Anthropic requires a
    limit in every request. The body shares parts of the arguments; they are not modified.
    """
    try:
        return _body(arguments, output_limit)
    except _NotUnderstoodError:
        return None


def _body(arguments: Mapping[str, Any], output_limit: int) -> JsonObject:
    if not arguments.keys() <= _KNOWN_ARGUMENTS or not _string(arguments.get("api_key")):
        raise _NotUnderstoodError
    name, messages = _name(arguments), list(_dicts(arguments.get("messages")))
    start = 1 if messages and messages[0].get("role") == "system" else 0
    conversation = _conversation(messages[start:])
    if not conversation:
        raise _NotUnderstoodError
    options = _options(arguments, name)
    if "tools" not in options and any(message.get("tool_calls") is not None for message in messages):
        options["tools"] = [_DUMMY_TOOL]  # without tools, calls are refused
    if start:
        system = list(_system(messages[0]))
        options |= {"system": system} if system else {}
    if "max_tokens" not in options:
        if output_limit <= 0:
            raise _NotUnderstoodError
        options["max_tokens"] = output_limit
    return {"model": name, "messages": conversation, **options, "stream": True}


def _name(arguments: Mapping[str, Any]) -> str:
    """Return Anthropic's name of the model."""
    prefix, slash, name = _string(arguments.get("model")).partition("/")
    if not slash:  # litellm looks up the provider by name and address
        prefix, name = ("anthropic", prefix) if prefix in _BUDGETED | _ADAPTIVE else ("", "")
        prefix = "" if arguments.get("api_base") else prefix
    _string(arguments.get("api_base") or "")
    if prefix != "anthropic" or not name or "/" in name or name in _COMPLETION_MODELS:
        raise _NotUnderstoodError
    return name


def _options(arguments: Mapping[str, Any], name: str) -> dict[str, Json]:
    options: dict[str, Json] = {}
    limit = arguments.get("max_tokens")
    if limit is not None:
        if not isinstance(limit, int) or isinstance(limit, bool):
            raise _NotUnderstoodError
        options["max_tokens"] = limit
    if "tools" in arguments:
        options["tools"] = _tools(arguments["tools"])
    if "tool_choice" in arguments:
        if arguments["tool_choice"] not in _TOOL_CHOICES:
            raise _NotUnderstoodError
        options["tool_choice"] = {"type": arguments["tool_choice"]}
    return options | _thinking(arguments.get("reasoning_effort"), name, limit)


def _thinking(effort: Any, name: str, limit: int | None) -> dict[str, Json]:
    """Return the options for a reasoning effort; none if the model decides by itself."""
    if effort is None or _string(effort) == "none":
        return {}
    if name in _BUDGETED and effort in _BUDGETS:
        thinking = {"type": "enabled", "budget_tokens": _BUDGETS[effort]}
        extra = {} if limit is not None else {"max_tokens": _BUDGETS[effort] + _ANSWER_BESIDE_BUDGET}
        return {"thinking": thinking, **extra}
    if name not in _ADAPTIVE or effort not in _EFFORTS:
        raise _NotUnderstoodError
    if effort == "xhigh" and name in _ADAPTIVE_BELOW_XHIGH:
        raise _NotUnderstoodError  # litellm refuses it
    return {
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": _EFFORTS[effort]},
    }


def _tools(tools: Any) -> list[JsonObject]:
    converted = [_tool(tool) for tool in _dicts(tools)]
    if not converted:
        raise _NotUnderstoodError
    return converted


def _tool(tool: JsonObject) -> JsonObject:
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, dict):
        raise _NotUnderstoodError
    _allow(tool, "type", "function", "cache_control")
    _allow(function, "name", "description", "parameters", "strict")
    name, description = _string(function.get("name")), function.get("description")
    if not _TOOL_NAME.fullmatch(name):
        raise _NotUnderstoodError  # litellm renames it
    converted = {"name": name, "input_schema": _schema(function.get("parameters")), "type": "custom"}
    if description is not None:
        converted["description"] = description
    return _with_cache_mark(converted, tool)


def _schema(parameters: Any) -> JsonObject:
    """Return the schema of a tool's arguments: an object, with the keys that Anthropic accepts."""
    if parameters is not None and not isinstance(parameters, dict):
        raise _NotUnderstoodError
    schema = dict(parameters or {})
    if schema.keys() & _OLD_DEFINITIONS:
        raise _NotUnderstoodError
    schema["type"] = "object"
    schema.setdefault("properties", {})
    return {key: value for key, value in schema.items() if key in _SCHEMA_KEYS}


def _system(message: JsonObject) -> Iterator[JsonObject]:
    _allow(message, "role", "content", "name")
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    for part in _dicts(content):
        if _string(part.get("text")):
            yield _text(part)


def _conversation(messages: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the conversation with consecutive messages of one role merged; results belong to the user."""
    merged: list[JsonObject] = []
    for is_assistant, run in groupby(messages, lambda message: message.get("role") == "assistant"):
        blocks = _replies if is_assistant else _prompts
        content = list(blocks(run))
        if content:
            merged.append({"role": "assistant" if is_assistant else "user", "content": content})
    if merged and merged[-1]["role"] == "assistant":
        merged[-1] = {
            **merged[-1],
            "content": [_without_trailing_space(block) for block in merged[-1]["content"]],
        }
    return merged


def _without_trailing_space(block: JsonObject) -> JsonObject:
    """Return a block of the last reply without trailing white space, which Anthropic refuses there."""
    return {**block, "text": block["text"].rstrip()} if block["type"] == "text" else block


def _prompts(messages: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Yield the blocks of user messages and tool results."""
    for message in messages:
        match message.get("role"):
            case "tool":
                yield _result(message)
            case "user":
                yield from _user(message)
            case _:
                raise _NotUnderstoodError


def _user(message: JsonObject) -> Iterator[JsonObject]:
    _allow(message, "role", "content", "name")
    content = message.get("content")
    if isinstance(content, str):
        yield {"type": "text", "text": content if content.strip() else _EMPTY_TEXT}
        return
    for part in _parts(content):
        yield _picture(part) if part.get("type") == "image_url" else _text(part, blank=_EMPTY_TEXT)


def _result(message: JsonObject) -> JsonObject:
    _allow(message, "role", "content", "name", "tool_call_id", "cache_control")
    content: Json = message.get("content")
    if not isinstance(content, str):
        content = [
            _picture(part) if part.get("type") == "image_url" else _text(part) for part in _parts(content)
        ]
    called = _id(message.get("tool_call_id"))
    return _with_cache_mark({"type": "tool_result", "tool_use_id": called, "content": content}, message)


def _replies(messages: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Yield the blocks of consecutive replies; of several calls with one id, only the first is sent."""
    ids: set[str] = set()
    for message in messages:
        _allow(message, "role", "content", "name", "tool_calls", "thinking_blocks", "reasoning_content")
        yield from filter(_is_signed, _dicts(message.get("thinking_blocks", ())))
        yield from _reply_blocks(message.get("content"))
        for call in map(_call, _dicts(message.get("tool_calls", ()))):
            if call["id"] not in ids:
                ids.add(call["id"])
                yield call


def _is_signed(block: JsonObject) -> bool:
    """Return whether a thinking block can be sent back: it must be signed, and by Anthropic."""
    match block.get("type"):
        case "thinking":
            sign = block.get("signature")
            return isinstance(sign, str) and sign != "" and not sign.startswith(_ANOTHER_PROVIDERS_THINKING)
        case "redacted_thinking":
            return not str(block.get("data")).startswith(_ANOTHER_PROVIDERS_THINKING)
        case _:
            raise _NotUnderstoodError


def _reply_blocks(content: Any) -> Iterator[JsonObject]:
    if isinstance(content, str):
        yield {"type": "text", "text": content if content.strip() else _EMPTY_TEXT}
    elif content is not None:
        for part in _parts(content):
            yield _text(part, blank=_EMPTY_TEXT)


def _call(call: JsonObject) -> JsonObject:
    function = call.get("function")
    if call.get("type") != "function" or not isinstance(function, dict):
        raise _NotUnderstoodError
    _allow(call, "type", "id", "function")
    _allow(function, "name", "arguments")
    arguments = _string(function.get("arguments"))
    try:
        value = read_json(arguments) if arguments.strip() else {}
    except ValueError:
        raise _NotUnderstoodError from None  # litellm repairs some and refuses others
    return {
        "type": "tool_use",
        "id": _id(call.get("id")),
        "name": _string(function.get("name")),
        "input": value,
    }


def _id(value: Any) -> str:
    return _NOT_IN_IDS.sub("_", _string(value)) or "tool_use_id"


def _text(part: JsonObject, *, blank: str = "") -> JsonObject:
    """Return a text part as a block; `blank` replaces blank text."""
    _allow(part, "type", "text", "cache_control")
    text = _string(part.get("text"))
    if part.get("type") != "text":
        raise _NotUnderstoodError
    return _with_cache_mark({"type": "text", "text": text if text.strip() or not blank else blank}, part)


def _picture(part: JsonObject) -> JsonObject:
    """Return a picture as a block: embedded data, or a URL."""
    _allow(part, "type", "image_url", "cache_control")
    picture = part.get("image_url")
    if isinstance(picture, dict):
        _allow(picture, "url", "detail")
        picture = picture.get("url")
    address = _string(picture)
    if address.startswith("https://"):
        return _with_cache_mark({"type": "image", "source": {"type": "url", "url": address}}, part)
    head, found, data = address.partition(";base64,")
    if not found or not _PICTURE.fullmatch(head) or ";" in data or "data:" in data:
        raise _NotUnderstoodError  # litellm fetches other addresses, and refuses the rest
    source = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
    return _with_cache_mark({"type": "image", "source": source}, part)


def _with_cache_mark(block: dict[str, Json], original: JsonObject) -> JsonObject:
    """Return the block with the cache mark of its original, if any."""
    mark = original.get("cache_control")
    if mark is None:
        return block
    if not isinstance(mark, dict):
        raise _NotUnderstoodError
    return {**block, "cache_control": mark}


def _parts(content: Any) -> list[JsonObject]:
    parts = list(_dicts(content))
    if not parts:
        raise _NotUnderstoodError
    return parts


def _dicts(values: Any) -> Iterator[JsonObject]:
    if not isinstance(values, list | tuple):
        raise _NotUnderstoodError
    for value in values:
        if not isinstance(value, dict):
            raise _NotUnderstoodError
        yield value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _NotUnderstoodError
    return value


def _allow(holder: JsonObject, *keys: str) -> None:
    """Raise for any other key: it is not known how litellm converts it."""
    if not holder.keys() <= set(keys):
        raise _NotUnderstoodError
