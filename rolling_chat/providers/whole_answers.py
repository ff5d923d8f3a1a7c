"""Convert unexpected answers: JSON instead of a stream, usage that is not a number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rolling_chat.messages import Json

MAX_TOKENS = 1_000_000_000
"""A larger number is not a token count."""

_COUNTS = ("_tokens", "TokenCount", "_count")
_NOTHING = {"input_tokens": 0, "output_tokens": 0}  # Anthropic's usage if it reported none


def as_events(body: bytes) -> bytes:
    """Convert an answer that is one JSON object to stream events; leave anything else unchanged."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if isinstance(answer, list) and answer and all(_is_gemini(part) for part in answer):
        return b"".join(_event(_cleaned(part)) for part in answer)
    if not isinstance(answer, dict):
        return body
    answer = _cleaned(answer)
    if _is_gemini(answer):
        return _event(answer)
    if error := _error(answer):
        return _event({"type": "error", "error": error})
    if answer.get("type") == "message" and isinstance(answer.get("content"), list):
        return b"".join(_event(event) for event in _anthropic_events(answer))
    choices = answer.get("choices")
    if isinstance(choices, list) and any(isinstance(choice, dict) for choice in choices):
        return b"".join(_event(event) for event in _openai_events(answer)) + b"data: [DONE]\n\n"
    return body


def clean_line(line: bytes) -> bytes:
    """Remove unparsable usage from a line of a stream; leave any other line unchanged."""
    prefix = b"data:" if line.startswith(b"data:") else b""
    text = line[len(prefix) :].strip()
    if not text.startswith(b"{"):
        return line
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return line
    cleaned = _cleaned(value)
    if _is_same(cleaned, value):
        return line
    end = line[len(line.rstrip(b"\r\n")) :]
    return prefix + b" " * bool(prefix) + json.dumps(cleaned).encode() + end


def _is_same(one: Json, other: Json) -> bool:
    """Compare by representation, because NaN does not equal itself and 1.0 equals 1."""
    return repr(one) == repr(other)


def _cleaned(value: dict[str, Any]) -> dict[str, Any]:
    """Return an event or an answer with valid token counts; invalid ones become 0."""
    cleaned = {
        key: token_count(inner) if key in {"prompt_eval_count", "eval_count"} else inner
        for key, inner in value.items()
    }
    for name in ("usage", "usageMetadata"):
        if name in cleaned:
            cleaned[name] = _usage(cleaned[name], cleaned.get("type"))
    message = cleaned.get("message")
    if cleaned.get("type") == "message_start" and isinstance(message, dict):
        cleaned["message"] = {**message, "usage": _usage(message.get("usage"), "message")}
    return cleaned


def _usage(usage: Any, kind: Any) -> dict[str, Any] | None:
    if not isinstance(usage, dict):
        return dict(_NOTHING) if kind in {"message", "message_delta"} else None
    return {
        key: _details(value) if key.endswith("_details") else _figure(key, value)
        for key, value in usage.items()
    }


def _details(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    return {key: _figure(key, figure) for key, figure in value.items()}


def _figure(key: str, value: Any) -> Any:
    return token_count(value) if key.endswith(_COUNTS) and value is not None else value


def token_count(value: Any) -> int:
    """Return a reported number of tokens; 0 if it cannot be one."""
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value < MAX_TOKENS else 0


def _error(answer: dict[str, Any]) -> dict[str, Any] | None:
    """Return the error in an answer with a successful status, if any."""
    if "choices" in answer or "content" in answer:
        return None
    message = answer.get("error") or answer.get("detail") or answer.get("message")
    if isinstance(message, dict):
        return message
    return {"type": "error", "message": message} if isinstance(message, str) else None


def _is_gemini(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("candidates"), list)


def _event(value: Json) -> bytes:
    kind = value.get("type") if isinstance(value, dict) else None
    name = f"event: {kind}\n" if isinstance(kind, str) and kind.isidentifier() else ""
    return f"{name}data: {json.dumps(value)}\n\n".encode()


def _openai_events(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    head = {key: value for key, value in answer.items() if key not in {"choices", "usage"}}
    head["object"] = "chat.completion.chunk"
    for choice in filter(lambda choice: isinstance(choice, dict), answer["choices"][:1]):
        message = choice.get("message") or choice.get("delta") or {}
        delta = dict(message) if isinstance(message, dict) else {}
        if isinstance(delta.get("tool_calls"), list):
            delta["tool_calls"] = [
                {"index": index, **call}
                for index, call in enumerate(delta["tool_calls"])
                if isinstance(call, dict)
            ]
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        reason = choice.get("finish_reason") or ("tool_calls" if delta.get("tool_calls") else "stop")
        yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    if answer.get("usage"):
        yield {**head, "choices": [], "usage": answer["usage"]}


def _anthropic_events(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    usage = answer.get("usage") or dict(_NOTHING)
    yield {"type": "message_start", "message": {**answer, "content": [], "usage": usage}}
    for index, block in enumerate(block for block in answer["content"] if isinstance(block, dict)):
        yield {"type": "content_block_start", "index": index, "content_block": _without_content(block)}
        for delta in _anthropic_deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": answer.get("stop_reason") or "end_turn"}
    yield {"type": "message_delta", "delta": delta, "usage": usage}
    yield {"type": "message_stop"}


def _without_content(block: dict[str, Any]) -> dict[str, Any]:
    match block.get("type"):
        case "text":
            return {**block, "text": ""}
        case "tool_use":
            return {**block, "input": {}}
        case "thinking":
            return {**block, "thinking": "", "signature": ""}
        case _:
            return block


def _anthropic_deltas(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    match block.get("type"):
        case "text":
            yield {"type": "text_delta", "text": block.get("text") or ""}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": json.dumps(block.get("input") or {})}
        case "thinking":
            yield {"type": "thinking_delta", "thinking": block.get("thinking") or ""}
            yield {"type": "signature_delta", "signature": block.get("signature") or ""}
