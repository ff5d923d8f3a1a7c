"""A LiteLLM proxy's part in a request, for the gateway's callback: what it hands over and in which order."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rolling_chat.gateway.model_facts import ModelDirectory
from rolling_chat.gateway.plan_store import PlanStore
from rolling_chat.providers.litellm_loading import load_litellm


@dataclass
class Key:
    """What the proxy knows of who asks."""

    token: str = "hashed"
    metadata: dict[str, Any] = field(default_factory=dict)
    team_metadata: dict[str, Any] | None = None
    team_id: str | None = None


class SharedMemory:
    """Stands where the proxy has Redis: values go in and come out as text."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.is_broken = self.hangs = False
        self.asked = 0

    async def async_batch_get_cache(self, key_list: list[str]) -> Mapping[str, Any]:
        await asyncio.sleep(0)
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.is_broken:
            raise ConnectionError("Redis is gone")
        return {key: json.loads(self.values[key]) if key in self.values else None for key in key_list}

    async def async_set_cache(self, key: str, value: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0)
        if self.is_broken:
            raise ConnectionError("Redis is gone")
        self.values[key] = value


@dataclass
class Cache:
    """The proxy's `DualCache`, as far as the callback looks at it."""

    redis_cache: SharedMemory | None = None


def refused_error() -> type[Exception]:
    """The error by which the proxy answers a refusal; imported late, because LiteLLM is slow to import."""
    load_litellm(None)
    from litellm.proxy._types import ProxyException

    return ProxyException


class Worker:
    """One worker of a proxy whose models all have the same window."""

    def __init__(
        self,
        window: int = 8_000,
        *,
        shared: SharedMemory | None = None,
        name: str = "gpt-4o",
        table: Mapping[str, Any] | None = None,
        key: Key | None = None,
        store: PlanStore | None = None,
    ) -> None:
        info = {"max_input_tokens": window, "rolling_chat": dict(table or {})}
        row = {"litellm_params": {"model": name}, "model_info": info}
        load_litellm(None)
        from rolling_chat.gateway.hooks import RollingWindow

        self.window = window
        self.key = key or Key()
        self.cache = Cache(shared)
        models = ModelDirectory(lambda _model, _team: [row], lambda _model: {})
        self.hooks = RollingWindow(models=models, store=store)
        self.headers: Mapping[str, str] = {}
        self._calls = 0

    async def send(
        self, body: Mapping[str, Any], kind: str = "acompletion", usage: int = 0
    ) -> dict[str, Any]:
        """Return what goes to the model of a client's request; `usage` is what the model counts."""
        self._calls += 1
        call_id = f"call-{self._calls}"
        data = {"model": "chat", **copy.deepcopy(dict(body)), "litellm_call_id": call_id}
        try:
            changed = await self.hooks.async_pre_call_hook(self.key, self.cache, data, kind)
        finally:
            headers = await self.hooks.async_post_call_response_headers_hook(data, self.key, None)
            self.headers = headers or {}
        data = data if changed is None else changed
        if usage:
            await self.answer(usage)
        return {name: value for name, value in data.items() if name != "litellm_call_id"}

    async def answer(self, usage: int) -> None:
        """Let the model answer the newest request, of which it counts `usage` tokens."""
        kwargs = {"litellm_call_id": f"call-{self._calls}"}
        answer = {"usage": {"prompt_tokens": usage}}
        await self.hooks.async_log_success_event(kwargs, answer, None, None)

    async def refuse(self, body: Mapping[str, Any], error: Exception, **more: Any) -> None:
        """Let the model refuse a client's request."""
        await self.send({**body, **more})
        kwargs = {"litellm_call_id": f"call-{self._calls}", "exception": error}
        await self.hooks.async_log_failure_event(kwargs, None, None, None)


def anthropic_form(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """A conversation in OpenAI's form as a client of Anthropic's API would send it."""
    body: dict[str, Any] = {"messages": [], "max_tokens": 100}
    for message in messages:
        content = message.get("content")
        blocks = (
            [{"type": "text", "text": content}] if isinstance(content, str) and content else content or []
        )
        match message["role"]:
            case "system":
                body["system"] = content
                continue
            case "assistant":
                blocks = [
                    *message.get("thinking_blocks", ()),
                    *blocks,
                    *map(_tool_use, message.get("tool_calls") or ()),
                ]
            case "tool":
                blocks = [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content}]
        role = "assistant" if message["role"] == "assistant" else "user"
        last = body["messages"][-1] if body["messages"] else None
        if last is not None and last["role"] == role:
            last["content"].extend(blocks)
        else:
            body["messages"].append({"role": role, "content": list(blocks)})
    return body


def _tool_use(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = json.loads(function["arguments"])
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}
