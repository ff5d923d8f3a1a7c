"""What the gateway adds to a request: the same through two LiteLLM proxies, with the callback and without.

Both have one worker and the same Redis. `ROLLING_CHAT_PROXY_VENV` names a virtual environment with the proxy.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.support.litellm_proxy import MASTER_KEY, LiteLLMProxy, proxy_programs, redis_server
from tests.support.servers import OpenAIServer, Reply

_CONVERSATIONS, _TURNS = 60, 10
_WORDS = ["alpha", "Beta", "gamma42", "delta", "αβγ"]


class _Server(OpenAIServer):
    """Counts roughly, for its own work is no matter here."""

    def count(self, body: dict[str, Any]) -> int:
        return sum(len(str(message["content"])) for message in body["messages"]) // 4


@dataclass
class _Times:
    """Milliseconds of each request, in order."""

    with_callback: list[float] = field(default_factory=list)
    without: list[float] = field(default_factory=list)


def run() -> Iterator[str]:
    """Measure conversations of 10 turns, of short and of long messages."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        programs = proxy_programs(Path(os.environ.get("ROLLING_CHAT_PROXY_VENV", folder / "venv")))
        server = stack.enter_context(_Server(lambda _body: Reply("So it is. " * 20)).in_thread())
        port = stack.enter_context(redis_server(folder))
        both = [
            stack.enter_context(LiteLLMProxy(programs, _config(server.api_base, port, callbacks), folder))
            for callbacks in (["rolling_chat.gateway.handler"], [])
        ]
        client = stack.enter_context(
            httpx.Client(headers={"Authorization": f"Bearer {MASTER_KEY}"}, timeout=60)
        )
        for model, words in (("small", 180), ("large", 3_000)):
            _measure(client, both, model, words, conversations=3)  # until everything is loaded
            yield from _lines(model, words, _measure(client, both, model, words, _CONVERSATIONS))


def _config(address: str, port: int, callbacks: list[str]) -> dict[str, Any]:
    params = {"model": "openai/gpt-4o", "api_base": address, "api_key": "any"}
    models = [
        {"model_name": name, "litellm_params": params, "model_info": {"max_input_tokens": window}}
        for name, window in (("small", 3_000), ("large", 48_000))
    ]
    redis = {"coordination_redis": {"host": "127.0.0.1", "port": port}}
    return {"model_list": models, "litellm_settings": {"callbacks": callbacks}, "general_settings": redis}


def _measure(
    client: httpx.Client, both: list[LiteLLMProxy], model: str, words: int, conversations: int
) -> _Times:
    times = _Times()
    for number in range(conversations):
        chosen = random.Random(number)
        messages: list[dict[str, str]] = [{"role": "system", "content": "Be nice."}]
        for turn in range(_TURNS):
            said = " ".join(chosen.choices(_WORDS, k=words))
            messages.append({"role": "user", "content": f"{conversations} {number} {turn}: {said}"})
            body = {"model": model, "messages": messages}
            for at in (0, 1) if chosen.random() < 0.5 else (1, 0):
                began = time.perf_counter()
                answer = client.post(f"{both[at].address}/v1/chat/completions", json=body)
                took = 1_000 * (time.perf_counter() - began)
                answer.raise_for_status()
                (times.without if at else times.with_callback).append(took)
            messages.append(
                {"role": "assistant", "content": answer.json()["choices"][0]["message"]["content"]}
            )
    return times


def _lines(model: str, words: int, times: _Times) -> Iterator[str]:
    yield f"{model}: {len(times.without)} requests of conversations with {words} words a message"
    more = [one - other for one, other in zip(times.with_callback, times.without, strict=True)]
    for name, one in (("without", times.without), ("with", times.with_callback), ("difference", more)):
        yield f"  {name:10} p50 {_quantile(one, 0.5):6.1f} ms, p95 {_quantile(one, 0.95):6.1f} ms"


def _quantile(times: list[float], share: float) -> float:
    return sorted(times)[int(share * (len(times) - 1))]
