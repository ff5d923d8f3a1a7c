"""A server of OpenAI's chat completions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rolling_chat.context import count_tokens
from tests.support.servers.prompt_caches import PrefixCache
from tests.support.servers.running import ScriptedServer
from tests.support.servers.script import Call, Fail, Reply

_HEAD = {"id": "chatcmpl-1", "created": 1, "model": "scripted"}


class OpenAIServer(ScriptedServer):
    """Counts with o200k_base and OpenAI's framing; streams fragments of calls as OpenAI does.

    It also refuses what the chat templates of local servers refuse: a second system message, a
    conversation that does not begin with the user's. `cache`, where given, is its prompt cache.
    """

    path = "/v1/chat/completions"
    cache: PrefixCache | None = None

    @property
    def api_base(self) -> str:
        return f"{self.address}/v1"

    def count(self, body: dict[str, Any]) -> int:
        messages = sum(4 + count_tokens(_text_of(message), "gpt-4o") for message in body["messages"])
        tools = count_tokens(json.dumps(body["tools"]), "gpt-4o") if body.get("tools") else 0
        return messages + tools + 3

    def count_answer(self, tokens: int) -> dict[str, Any]:
        return {"count": tokens, "max_model_len": self.window, "tokens": list(range(tokens))}

    def is_authorised(self, headers: Any) -> bool:
        return bool(headers.get("authorization") == f"Bearer {self.key}")

    def unauthorised(self) -> Fail:
        return _error(401, "Incorrect API key provided: sk-wrong*****key.", "invalid_api_key")

    def refusal(self, body: dict[str, Any], tokens: int) -> Fail | None:
        fault = find_fault(body["messages"])
        if fault:
            return _error(400, fault, None)
        room = body.get("max_tokens") or body.get("max_completion_tokens") or 0
        if tokens + room <= self.window:
            return None
        counted = (
            f"you requested {tokens + room} tokens ({tokens} in the messages, {room} in the completion)"
            if room
            else f"your messages resulted in {tokens} tokens"
        )
        return _error(
            400,
            f"This model's maximum context length is {self.window} tokens. However, {counted}. "
            "Please reduce the length of the messages.",
            "context_length_exceeded",
        )

    def events(self, reply: Reply, body: dict[str, Any], tokens: int) -> Iterator[tuple[str, bool]]:
        yield _event({"role": "assistant", "content": ""}), False
        if reply.reasoning:
            for word in reply.reasoning.split(" "):
                yield _event({"reasoning_content": word + " "}), False
        for piece in reply.pieces():
            yield _event({"content": piece}), True
        for index, call in enumerate(reply.calls):
            for fragment in _fragments(index, call):
                yield _event({"tool_calls": [fragment]}), False
        yield _event({}, finish_reason=_finish_reason(reply)), False
        if reply.usage and (body.get("stream_options") or {}).get("include_usage"):
            yield _line({"choices": [], "usage": self._usage(reply, body, tokens)}), False
        yield "data: [DONE]\n\n", False

    def whole(self, reply: Reply, body: dict[str, Any], tokens: int) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        if reply.calls:
            message["tool_calls"] = [
                {
                    "id": call.id or f"call_{index}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for index, call in enumerate(reply.calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply)}
        data = {**_HEAD, "object": "chat.completion", "choices": [choice]}
        return {**data, "usage": self._usage(reply, body, tokens)} if reply.usage else data

    def _usage(self, reply: Reply, body: dict[str, Any], tokens: int) -> dict[str, Any]:
        text = reply.text + reply.reasoning + "".join(call.name + call.arguments for call in reply.calls)
        output = count_tokens(text, "gpt-4o")
        usage = {"prompt_tokens": tokens, "completion_tokens": output, "total_tokens": tokens + output}
        if self.cache is None:
            return usage
        return {**usage, "prompt_tokens_details": {"cached_tokens": self.cache.use(body, tokens)}}


def find_fault(messages: list[dict[str, Any]]) -> str:
    """What is wrong with the order, the pairs or the contents of `messages`; empty where nothing is."""
    rest = messages
    if messages and messages[0]["role"] == "system":
        rest = messages[1:]
    if any(message["role"] == "system" for message in rest):
        return "System message must be at the beginning."
    if not rest or rest[0]["role"] != "user":
        return "Conversation roles must start with user."
    waiting: list[str] = []
    for place, message in enumerate(rest):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                return (
                    "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
                )
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return _unanswered(waiting)
        if not message.get("content") and not message.get("tool_calls"):
            return f"Invalid value for 'content': expected a string, got null (messages[{place}])."
        for call in message.get("tool_calls") or ():
            json.loads(call["function"]["arguments"])
            waiting.append(call["id"])
    return _unanswered(waiting) if waiting else ""


def _unanswered(ids: list[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(ids)}"
    )


def _text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    texts = [content] if isinstance(content, str) else [str(part.get("text", "")) for part in content]
    texts += [json.dumps(call["function"]) for call in message.get("tool_calls") or ()]
    return "\n".join(texts)


def _error(status: int, message: str, code: str | None) -> Fail:
    error = {"message": message, "type": "invalid_request_error", "param": "messages", "code": code}
    return Fail(status, {"error": error})


def _fragments(index: int, call: Call) -> Iterator[dict[str, Any]]:
    """Id and name come with the first fragment only, as OpenAI sends them."""
    first = {"name": call.name, "arguments": ""}
    yield {"index": index, "id": call.id or f"call_{index}", "type": "function", "function": first}
    for start in range(0, len(call.arguments), 7):
        yield {"index": index, "function": {"arguments": call.arguments[start : start + 7]}}


def _event(delta: dict[str, Any], finish_reason: str | None = None) -> str:
    return _line({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})


def _finish_reason(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.calls else "stop")


def _line(data: dict[str, Any]) -> str:
    return f"data: {json.dumps({**_HEAD, 'object': 'chat.completion.chunk', **data})}\n\n"
