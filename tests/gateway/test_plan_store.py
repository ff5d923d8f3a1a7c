"""Plans in memory and in what workers share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from rolling_chat.context import ContextConfig, build_final_prompt
from rolling_chat.gateway.plan_store import PlanStore
from rolling_chat.recognition.fingerprints import Branch, Recognizer
from tests.support.conversations import assistant, user
from tests.support.gateway import SharedMemory


def branch(turns: int, first: str = "Hi.") -> Branch:
    messages = [user(first)]
    for number in range(turns):
        messages += [assistant(f"Answer {number}."), user(f"Question {number}.")]
    return Recognizer().branch(messages)


async def keep(store: PlanStore, one: Branch, shared: SharedMemory | None = None, after: str = "") -> None:
    plan = build_final_prompt(one.messages, ContextConfig(max_context_tokens=10_000), model="gpt-4o").plan
    await store.keep(one.prefixes[-1], plan, shared, after=after)


async def test_the_longest_known_prefix_is_found() -> None:
    store = PlanStore()
    await keep(store, branch(2))
    await keep(store, branch(4))
    assert (await store.find(branch(9), "m", None)).length == 9
    assert (await store.find(branch(3), "m", None)).length == 5
    assert (await store.find(branch(9, "Hello."), "m", None)).length == 0


async def test_a_long_known_prefix_far_back_is_found_with_others() -> None:
    shared = SharedMemory()
    await keep(PlanStore(), branch(2), shared)
    found = await PlanStore().find(branch(40), "m", shared)
    assert found.length == 5
    assert found.plan is not None


async def test_a_shared_store_that_hangs_is_left_alone_for_a_while() -> None:
    shared, now = SharedMemory(), 100.0
    await keep(PlanStore(), branch(2), shared)
    store = PlanStore(patience=0.01, rest=5.0, clock=lambda: now)
    shared.hangs = True
    for _ in range(3):
        assert (await store.find(branch(4), "m", shared)).length == 0
    assert shared.asked == 1
    shared.hangs, now = False, 106.0
    assert (await store.find(branch(4), "m", shared)).length == 5


async def test_a_time_in_which_this_process_stood_still_is_no_fault_of_the_store(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shared, now = SharedMemory(), 100.0
    await keep(PlanStore(), branch(2), shared)
    answer, asked = shared.async_batch_get_cache, 0

    async def unheard_at_first(key_list: list[str]) -> Mapping[str, Any]:
        nonlocal asked, now
        asked += 1
        if asked == 1:
            now += 10.0
            await asyncio.Event().wait()
        return await answer(key_list)

    monkeypatch.setattr(shared, "async_batch_get_cache", unheard_at_first)
    store = PlanStore(patience=0.01, clock=lambda: now)
    assert (await store.find(branch(4), "m", shared)).length == 5
    assert not caplog.records
