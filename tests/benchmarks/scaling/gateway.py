"""What requests cost a gateway: memory of a real Redis for their plans, and the CPU of planning them."""

from __future__ import annotations

import asyncio
import copy
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import redis

from rolling_chat.providers.litellm_loading import load_litellm
from tests.benchmarks.scaling.mix import Mix
from tests.support.gateway import Worker
from tests.support.litellm_proxy import redis_server

WINDOWS = {"8k": 8_000, "32k": 32_000, "128k": 128_000}
_CONVERSATIONS = {"8k": 6, "32k": 3, "128k": 1}
_GROWS_TO = 2  # windows, by a token of four characters
_OTHER_WORKER = 10  # of so many requests, one is planned by a worker that has not seen the conversation
_SYSTEM = {"role": "system", "content": "You are a careful assistant. " * 20}


def gateway_units() -> dict[str, float]:
    """Return the units of every window. Needs the program `redis-server`."""
    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder)) as port:
        load_litellm(None)
        units: dict[str, float] = {}
        for name, window in WINDOWS.items():
            units |= asyncio.run(_units_of(name, window, port))
        return units


async def _units_of(name: str, window: int, port: int) -> dict[str, float]:
    with closing(redis.Redis(port=port)) as client:
        worker = _worker(window, port)
        await _cpu(worker, {"messages": [_SYSTEM, {"role": "user", "content": "Hello."}]}, call="loads")
        client.flushall()
        warm: list[float] = []
        cold: list[float] = []
        for number in range(_CONVERSATIONS[name]):
            for at, body in enumerate(_requests(number, window)):
                if at % _OTHER_WORKER == _OTHER_WORKER - 1:
                    cold.append(await _cpu(_worker(window, port), body, call=f"{number}-{at}-cold"))
                warm.append(await _cpu(worker, body, call=f"{number}-{at}"))
        keys = list(client.scan_iter("*rolling_chat:plan:*"))
        sizes = [int(client.memory_usage(key) or 0) for key in keys]
    return {
        f"plan_bytes_{name}": statistics.mean(sizes),
        f"plan_bytes_most_{name}": max(sizes),
        f"plan_ms_{name}": 1000 * statistics.mean(warm),
        f"plan_ms_new_worker_{name}": 1000 * statistics.mean(cold),
    }


def _worker(window: int, port: int) -> Worker:
    from litellm.caching.redis_cache import RedisCache

    cache: Any = RedisCache(host="127.0.0.1", port=port)
    return Worker(window, shared=cache)


def _requests(seed: int, window: int) -> list[dict[str, Any]]:
    """Return the requests of one conversation, each with all that was said before."""
    said: list[dict[str, Any]] = [_SYSTEM]
    bodies: list[dict[str, Any]] = []
    size = 0
    for message in Mix(seed).conversation():
        said.append(message)
        size += len(message["content"])
        if message["role"] in ("user", "tool"):
            bodies.append({"messages": list(said)})
            if size > 4 * _GROWS_TO * window:
                return bodies
    raise AssertionError  # a conversation has no end


async def _cpu(worker: Worker, body: dict[str, Any], call: str) -> float:
    """Return the seconds of CPU that planning a request takes, with what is said to Redis for it."""
    data = {"model": "chat", **copy.deepcopy(body), "litellm_call_id": call}
    began = time.process_time()
    await worker.hooks.async_pre_call_hook(worker.key, worker.cache, data, "acompletion")
    return time.process_time() - began
