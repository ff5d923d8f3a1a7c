"""Workers that share a real Redis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from rolling_chat.gateway.plan_store import PlanStore
from rolling_chat.providers.litellm_loading import load_litellm
from tests.support.conversations import assistant, user
from tests.support.gateway import Worker
from tests.support.litellm_proxy import redis_server

WINDOW, TURNS = 2_000, 16
GARBAGE = [
    b"\xff\xfe",
    "",
    "nonsense",
    "[1, 2]",
    '{"version": 3}',
    '{"limit": "x", "measurements": [1]}',
    "1" * 5_000,
]


class Redis:
    """A Redis of this test's own, which can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._stack = folder, ExitStack()
        self.stop = self._stack.close
        self.port = 0
        self.start()
        self.client = redis.Redis(port=self.port)

    def start(self) -> None:
        self.port = self._stack.enter_context(redis_server(self._folder, self.port))

    def worker(self, *, rest: float = 5.0) -> Worker:
        """A worker with the cache that LiteLLM's proxy has of it."""
        load_litellm(None)
        from litellm.caching.redis_cache import RedisCache

        cache: Any = RedisCache(host="127.0.0.1", port=self.port)
        return Worker(WINDOW, shared=cache, store=PlanStore(rest=rest))

    def plans(self) -> int:
        return len(list(self.client.scan_iter("*rolling_chat:plan:*")))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(tmp_path)
    yield server
    server.client.close()
    server.stop()


def requests() -> Iterator[dict[str, Any]]:
    """The requests of a growing conversation."""
    messages: list[dict[str, Any]] = []
    for number in range(TURNS):
        messages.append(user(f"Question {number}. " + "word " * 120))
        yield {"messages": list(messages)}
        messages.append(assistant(f"Answer {number}."))


async def test_two_workers_send_what_one_would_and_so_does_one_that_is_started_again(server: Redis) -> None:
    alone, two = Worker(WINDOW), [server.worker(), server.worker()]
    for number, body in enumerate(requests()):
        if number == TURNS // 2:
            two[0] = server.worker()
        assert await two[number % 2].send(body) == await alone.send(body)
    assert int(alone.headers["x-rolling-omitted"]) > 0


async def test_garbage_under_the_plans_keys_is_no_plan(server: Redis) -> None:
    for number, body in enumerate(requests()):
        worker = server.worker()
        await worker.send(body, usage=500)
        assert not worker.hooks.counters.requests["failed_open"]
        for key in server.client.scan_iter("*rolling_chat:*"):
            server.client.delete(key)
            if number % 8 == 0:
                server.client.rpush(key, "a list")
            else:
                server.client.set(key, GARBAGE[number % 8 - 1])
    assert int(worker.headers["x-rolling-omitted"]) > 0


async def test_when_redis_goes_away_each_worker_plans_by_itself(
    server: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    worker = server.worker()
    for number, body in enumerate(requests()):
        if number == TURNS // 2:
            server.stop()
        sent = await worker.send(body)
        assert sent["messages"][-1] == body["messages"][-1]
    assert int(worker.headers["x-rolling-omitted"]) > 0
    assert "each worker plans by itself" in caplog.text
    assert not worker.hooks.counters.requests["failed_open"]


async def test_when_redis_comes_back_plans_are_shared_again(server: Redis) -> None:
    worker = server.worker(rest=0)
    for number, body in enumerate(requests()):
        if number == 4:
            server.stop()
        if number == 6:
            server.start()
        await worker.send(body)
    assert server.plans() > 0
    assert await server.worker().send(body) == await worker.send(body)
    assert not worker.hooks.counters.requests["failed_open"]
