"""A server of Anthropic's messages, with the rules of its prompt cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from rolling_chat.context import count_tokens
from tests.support.servers.prompt_caches import Block, MarkedCache
from tests.support.servers.running import ScriptedServer
from tests.support.servers.script import Fail, Reply, Script, Step

_MOST_MARKS = 4
_TTL = {"5m": 300.0, "1h": 3_600.0}


class AnthropicServer(ScriptedServer):
    """Counts like a Claude (a third more than cl100k); signs its thinking, and knows its signatures.

    The cache keeps the prefix up to every mark; a later request reads the longest one that ends at
    most 20 blocks before one of its marks.
    """

    path = "/v1/messages"
    count_path = "/v1/messages/count_tokens"

    def __init__(
        self,
        script: Iterable[Step] | Script = (),
        *,
        window: int = 200_000,
        key: str = "",
        cache: MarkedCache | None = None,
    ) -> None:
        super().__init__(script, window=window, key=key)
        self.cache = cache or MarkedCache()
        self._signatures: set[str] = set()

    def count(self, body: dict[str, Any]) -> int:
        return sum(block.tokens for block in _prefixes(body)[-1:])

    def count_answer(self, tokens: int) -> dict[str, Any]:
        return {"input_tokens": tokens}

    def is_authorised(self, headers: Any) -> bool:
        return bool(headers.get("x-api-key") == self.key)

    def unauthorised(self) -> Fail:
        return _error(401, "authentication_error", "invalid x-api-key")

    def refusal(self, body: dict[str, Any], tokens: int) -> Fail | None:
        fault = self._fault(body)
        if fault:
            return _error(400, "invalid_request_error", fault)
        if tokens > self.window:
            return _error(
                400, "invalid_request_error", f"prompt is too long: {tokens} tokens > {self.window} maximum"
            )
        room = body["max_tokens"]
        if tokens + room > self.window:
            return _error(
                400,
                "invalid_request_error",
                f"input length and `max_tokens` exceed context limit: {tokens} + {room} > {self.window}, "
                "decrease input length or `max_tokens` and try again",
            )
        return None

    def events(self, reply: Reply, body: dict[str, Any], tokens: int) -> Iterator[tuple[str, bool]]:
        usage = {**self._input_usage(body, tokens), "output_tokens": 1}
        yield _event("message_start", {"message": {**_head(body), "content": [], "usage": usage}}), False
        for index, (block, deltas, is_text) in enumerate(self._blocks(reply)):
            yield _event("content_block_start", {"index": index, "content_block": block}), False
            for delta in deltas:
                yield _event("content_block_delta", {"index": index, "delta": delta}), is_text
            yield _event("content_block_stop", {"index": index}), False
        delta = {"delta": {"stop_reason": _stop_reason(reply)}, "usage": _output_usage(reply)}
        yield _event("message_delta", delta), False
        yield _event("message_stop", {}), False

    def whole(self, reply: Reply, body: dict[str, Any], tokens: int) -> dict[str, Any]:
        return {
            **_head(body),
            "content": [_filled(block, deltas) for block, deltas, _is_text in self._blocks(reply)],
            "stop_reason": _stop_reason(reply),
            "stop_sequence": None,
            "usage": {**self._input_usage(body, tokens), **_output_usage(reply)},
        }

    def _input_usage(self, body: dict[str, Any], tokens: int) -> dict[str, Any]:
        read, written = self.cache.use(body, _prefixes(body))
        return {
            "input_tokens": tokens - read - sum(written.values()),
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": sum(written.values()),
            "cache_creation": {
                "ephemeral_5m_input_tokens": written.get(_TTL["5m"], 0),
                "ephemeral_1h_input_tokens": written.get(_TTL["1h"], 0),
            },
        }

    def _blocks(self, reply: Reply) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]], bool]]:
        if reply.reasoning:
            signature = hashlib.sha256(reply.reasoning.encode()).hexdigest()
            self._signatures.add(signature)
            words = [
                {"type": "thinking_delta", "thinking": word + " "} for word in reply.reasoning.split(" ")
            ]
            signed = {"type": "signature_delta", "signature": signature}
            yield {"type": "thinking", "thinking": "", "signature": ""}, [*words, signed], False
        if reply.text:
            pieces = [{"type": "text_delta", "text": piece} for piece in reply.pieces()]
            yield {"type": "text", "text": ""}, pieces, True
        for index, call in enumerate(reply.calls):
            parts = [call.arguments[start : start + 7] for start in range(0, len(call.arguments), 7)]
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
            yield (
                {"type": "tool_use", "id": call.id or f"toolu_{index}", "name": call.name, "input": {}},
                deltas,
                False,
            )

    def _fault(self, body: dict[str, Any]) -> str:
        marks = [block.ttl for block in _prefixes(body) if block.ttl]
        if len(marks) > _MOST_MARKS:
            return (
                f"A maximum of {_MOST_MARKS} blocks with cache_control may be provided. Found {len(marks)}."
            )
        if marks != sorted(marks, reverse=True):
            return "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
        if not isinstance(body.get("max_tokens"), int):
            return "max_tokens: Field required"
        if (body.get("thinking") or {}).get("budget_tokens", 0) >= body["max_tokens"]:
            return "`max_tokens` must be greater than `thinking.budget_tokens`."
        messages = body["messages"]
        if not messages or messages[0]["role"] != "user":
            return "messages: first message must use the user role"
        return _content_fault(messages, self._signatures)


def _head(body: dict[str, Any]) -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]}


def _stop_reason(reply: Reply) -> str:
    return reply.finish_reason or ("tool_use" if reply.calls else "end_turn")


def _output_usage(reply: Reply) -> dict[str, int]:
    text = reply.text + reply.reasoning + "".join(call.arguments for call in reply.calls)
    return {"output_tokens": max(1, _tokens(text))}


def _filled(block: dict[str, Any], deltas: list[dict[str, Any]]) -> dict[str, Any]:
    """The block that its deltas add up to."""
    filled = dict(block)
    arguments = ""
    for delta in deltas:
        arguments += delta.get("partial_json", "")
        for field in ("text", "thinking", "signature"):
            if field in delta:
                filled[field] += delta[field]
    return {**filled, "input": json.loads(arguments)} if arguments else filled


def _content_fault(messages: list[dict[str, Any]], signatures: set[str]) -> str:
    used: set[str] = set()
    waiting: set[str] = set()
    for place, message in enumerate(messages):
        blocks = _blocks_of(message)
        if not blocks:
            return f"messages.{place}: all messages must have non-empty content"
        answers = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        if waiting - answers:
            missing = ", ".join(sorted(waiting - answers))
            return f"messages.{place - 1}: `tool_use` ids were found without `tool_result` blocks: {missing}"
        if answers - waiting:
            return f"messages.{place}: unexpected `tool_use_id` found in `tool_result` blocks"
        waiting = {block["id"] for block in blocks if block["type"] == "tool_use"}
        if waiting & used:
            return f"messages.{place}: `tool_use` ids must be unique"
        used |= waiting
        for block in blocks:
            if block["type"] == "text" and not block["text"].strip():
                return f"messages.{place}: text content blocks must contain non-whitespace text"
            if block["type"] == "thinking" and block["signature"] not in signatures:
                return f"messages.{place}: Invalid `signature` in `thinking` block"
    return "messages: `tool_use` ids were found without `tool_result` blocks" if waiting else ""


def _blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else list(content)


def _prefixes(body: dict[str, Any]) -> list[Block]:
    """The blocks of the prompt in the cache's order: tools, system, messages.

    Another model has a cache of its own; another tool choice or thinking budget has the messages read anew.
    """
    system = body.get("system") or []
    before = [
        *(body.get("tools") or []),
        *([{"type": "text", "text": system}] if isinstance(system, str) else system),
    ]
    blocks = [*before, *(block for message in body["messages"] for block in _blocks_of(message))]
    digest, tokens = hashlib.sha256(str(body["model"]).encode()), 3
    prefixes = []
    for place, block in enumerate(blocks):
        if place == len(before):
            digest.update(json.dumps([body.get("tool_choice"), body.get("thinking")]).encode())
        bare = {key: value for key, value in block.items() if key != "cache_control"}
        text = json.dumps(bare, sort_keys=True, ensure_ascii=False)
        digest.update(text.encode())
        tokens += _tokens(text)
        mark = block.get("cache_control")
        prefixes.append(Block(digest.hexdigest(), tokens, _TTL[mark.get("ttl", "5m")] if mark else 0.0))
    return prefixes


def _tokens(text: str) -> int:
    return count_tokens(text, "gpt-4") * 4 // 3


def _error(status: int, kind: str, message: str) -> Fail:
    return Fail(status, {"type": "error", "error": {"type": kind, "message": message}})


def _event(kind: str, data: dict[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"
