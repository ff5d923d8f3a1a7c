"""Parse the events of Anthropic's streamed answers as litellm does, without importing it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rolling_chat.messages import Json, JsonObject, Usage
from rolling_chat.providers.direct.errors import AnswerError
from rolling_chat.providers.fragments import CallFragment, Fragment
from rolling_chat.providers.whole_answers import token_count

_BROKEN_STATUS = 500  # for an error within a stream, which has no status of its own
# Why a reply ended, in OpenAI's terms; any other reason counts as a normal end.
_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "compaction": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "content_filtered": "content_filter",
}
_CALLS = frozenset({"tool_use", "server_tool_use"})


class AnthropicEvents:
    """Converts the events of one answer, given in order, to fragments of a reply.

    Unknown events, and unknown parts of events, are ignored.
    """

    def __init__(self) -> None:
        self._block = ""  # the type of the open block
        self._thinking: list[str] = []  # the reasoning in the open block
        self._is_signed = False  # whether the open block is signed
        self._arguments: str | None = None  # the first character of its arguments, None before a piece
        self._call = -1  # the index of the newest call
        self._usage: dict[str, Json] = {}

    def read(self, event: JsonObject) -> Fragment | None:
        """Return what an event adds to the reply; None for nothing. Raises AnswerError for an error event."""
        match event.get("type"):
            case "content_block_delta":
                return self._delta(_dict(event.get("delta")))
            case "content_block_start":
                return self._start(_dict(event.get("content_block")))
            case "content_block_stop":
                return self._stop()
            case "message_start":
                return self._usage_fragment(_dict(event.get("message")).get("usage"))
            case "message_delta":
                return self._end(event)
            case "message_stop":
                return Fragment(has_ended=True)
            case "error":
                raise _error(event)
            case _:
                return None

    def _start(self, block: JsonObject) -> Fragment | None:
        self._block = _text(block, "type")
        self._thinking, self._is_signed, self._arguments = [], False, None
        match self._block:
            case "text":
                text = _text(block, "text")
                return Fragment(text=text) if text else None
            case "tool_use" | "server_tool_use":
                self._call += 1
                call = CallFragment(self._call, _text(block, "id"), _text(block, "name"))
                return Fragment(calls=(call,))
            case "redacted_thinking":
                return Fragment(thinking=({"type": "redacted_thinking", "data": _text(block, "data")},))
            case _:
                return None

    def _delta(self, delta: JsonObject) -> Fragment | None:
        if text := _text(delta, "text"):
            return Fragment(text=text)
        if "partial_json" in delta:
            return self._argument(_text(delta, "partial_json"))
        return self._thought(_text(delta, "thinking"), _text(delta, "signature"))

    def _argument(self, piece: str) -> Fragment | None:
        self._arguments = self._arguments or piece[:1]
        if self._block not in _CALLS or not piece:
            return None
        return Fragment(calls=(CallFragment(self._call, arguments=piece),))

    def _thought(self, thinking: str, signature: str) -> Fragment | None:
        """Return a piece of reasoning; with the signature, which comes last, also return the whole block."""
        if thinking:
            self._thinking.append(thinking)
        if self._is_signed or not signature:
            return Fragment(reasoning=thinking) if thinking else None
        self._is_signed = True
        block = {"type": "thinking", "thinking": "".join(self._thinking), "signature": signature}
        return Fragment(reasoning=thinking, thinking=(block,))

    def _stop(self) -> Fragment | None:
        """Close the block; a call that received only empty arguments gets an empty object."""
        is_bare = self._block in _CALLS and self._arguments == ""
        self._block = ""
        return Fragment(calls=(CallFragment(self._call, arguments="{}"),)) if is_bare else None

    def _end(self, event: JsonObject) -> Fragment:
        reason = _REASONS.get(_text(_dict(event.get("delta")), "stop_reason"), "stop")
        return Fragment(finish_reason=reason, has_ended=True, usage=self._merge_usage(event.get("usage")))

    def _usage_fragment(self, usage: Json) -> Fragment | None:
        merged = self._merge_usage(usage)
        return None if merged is None else Fragment(usage=merged)

    def _merge_usage(self, usage: Json) -> Usage | None:
        """Return the usage so far; a later event repeats some figures, with additions."""
        if not isinstance(usage, dict):
            return None
        self._usage |= usage
        return _usage(self._usage)


def _usage(reported: JsonObject) -> Usage:
    """Convert usage to our form; if the server split a request into several, add up their figures."""
    rounds: list[JsonObject] = [one for one in _list(reported.get("iterations")) if isinstance(one, dict)]
    parts = rounds or [reported]
    read = _sum(parts, "cache_read_input_tokens")
    written = _sum(parts, "cache_creation_input_tokens")
    output = _sum(parts, "output_tokens")
    server_tools = _dict(reported.get("server_tool_use"))
    return Usage(
        input_tokens=_sum(parts, "input_tokens") + read + written,
        output_tokens=output,
        cached_read_tokens=read,
        cached_write_tokens=written,
        reasoning_tokens=min(_thought_tokens(parts, _thought_tokens([reported], 0)), output),
        is_sum=len(rounds) > 1 or any(_count(server_tools, name) for name in server_tools),
    )


def _thought_tokens(parts: Iterable[JsonObject], default: int) -> int:
    """Return the reasoning tokens; `default` if any part does not report them."""
    details = [_dict(part.get("output_tokens_details")) for part in parts]
    is_reported = all(one.get("thinking_tokens") is not None for one in details)
    return _sum(details, "thinking_tokens") if is_reported else default


def _sum(parts: Iterable[JsonObject], name: str) -> int:
    return sum(_count(part, name) for part in parts)


def _count(holder: JsonObject, name: str) -> int:
    return token_count(holder.get(name))


def _error(event: JsonObject) -> AnswerError:
    message = _text(_dict(event.get("error")), "message") or json.dumps(event, ensure_ascii=False)
    return AnswerError(message, _BROKEN_STATUS, body=event)


def _text(holder: Mapping[str, Any], name: str) -> str:
    value = holder.get(name)
    return value if isinstance(value, str) else ""


def _dict(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Json]:
    return value if isinstance(value, list) else []
