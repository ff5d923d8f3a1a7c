from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.agent.turn import batching
from rolling_chat.agent.turn.batching import batches, join
from rolling_chat.messages import Message, Usage
from rolling_chat.providers.protocol import Delta, Finished, ReasoningDelta, TextDelta, ToolCallDelta

FINISHED = Finished(Message("assistant", "x"), Usage())
FOR_EVER = 3_600.0  # an interval that no test waits for

deltas = st.lists(
    st.one_of(
        st.text(min_size=1).map(TextDelta),
        st.text(min_size=1).map(ReasoningDelta),
        st.just(ToolCallDelta(0, "a", "b", "c")),
    )
)


@given(deltas)
def test_joining_keeps_every_character_and_the_order(given_deltas: list[Delta]) -> None:
    joined = join(given_deltas)

    def characters(of: Sequence[Delta]) -> list[object]:
        told: list[object] = []
        for delta in of:
            match delta:
                case TextDelta(text) | ReasoningDelta(text):
                    told += [(type(delta), character) for character in text]
                case _:
                    told.append(delta)
        return told

    assert characters(joined) == characters(given_deltas)
    for before, after in pairwise(joined):
        assert type(before) is not type(after) or isinstance(before, ToolCallDelta)


async def test_what_came_meanwhile_is_one_batch() -> None:
    handed_out = asyncio.Event()

    async def stream() -> AsyncGenerator[Delta]:
        yield TextDelta("a")
        await handed_out.wait()
        for text in "bcd":
            yield TextDelta(text)
        yield FINISHED

    seen = []
    async for batch in batches(stream(), FOR_EVER):
        seen.append(batch)
        handed_out.set()
    assert seen == [[TextDelta("a")], [TextDelta("bcd"), FINISHED]]


async def test_what_came_before_an_error_comes_before_the_error() -> None:
    async def stream() -> AsyncGenerator[Delta]:
        yield TextDelta("a")
        await asyncio.sleep(0)
        yield TextDelta("b")
        raise ValueError("broken")

    seen: list[Delta] = []

    async def listen() -> None:
        async for batch in batches(stream(), FOR_EVER):
            seen.extend(batch)

    with pytest.raises(ValueError, match="broken"):
        await listen()
    assert join(seen) == [TextDelta("ab")]


async def test_nothing_is_read_after_the_end_and_the_stream_is_closed() -> None:
    closed = False

    async def stream() -> AsyncGenerator[Delta]:
        nonlocal closed
        try:
            yield FINISHED
            raise AssertionError("read on after the end")
        finally:
            closed = True

    assert [batch async for batch in batches(stream(), FOR_EVER)] == [[FINISHED]]
    assert closed


async def test_closing_early_closes_the_stream() -> None:
    closed = asyncio.Event()

    async def stream() -> AsyncGenerator[Delta]:
        try:
            yield TextDelta("a")
            await asyncio.Event().wait()
        finally:
            closed.set()

    async with aclosing(batches(stream(), FOR_EVER)) as open_batches:
        assert await anext(open_batches) == [TextDelta("a")]
    assert closed.is_set()


async def test_a_stream_that_will_not_close_does_not_hold_us_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rolling_chat.agent.turn.batching._CLOSING", 0.01)
    release = asyncio.Event()

    async def stream() -> AsyncGenerator[Delta]:
        yield TextDelta("a")
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async with aclosing(batches(stream(), FOR_EVER)) as open_batches:
        await anext(open_batches)
    release.set()


async def test_an_empty_stream_has_no_batches() -> None:
    async def stream() -> AsyncGenerator[Delta]:
        return
        yield FINISHED

    assert [batch async for batch in batches(stream(), FOR_EVER)] == []


async def test_a_stream_whose_batches_nobody_takes_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rolling_chat.agent.turn.batching._MAX_WAITING", 10)
    given = 0

    async def stream() -> AsyncGenerator[Delta]:
        nonlocal given
        for _ in range(100):
            given += 1
            yield TextDelta("a")
        yield FINISHED

    text = ""
    async for batch in batches(stream(), 0.0):
        assert given <= len(text) + 20
        for delta in batch:
            text += delta.text if isinstance(delta, TextDelta) else ""
        await asyncio.sleep(0)
    assert text == "a" * 100


async def test_others_run_while_a_stream_has_more_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "_MAX_READING", 0.0)  # as if each piece took that long
    has_run = asyncio.Event()

    async def stream() -> AsyncGenerator[Delta]:
        """As from a connection that has buffered the whole answer: nothing here waits."""
        asyncio.get_running_loop().call_soon(has_run.set)
        for _ in range(1_000):
            if has_run.is_set():
                return
            yield ToolCallDelta(0, "a", "b", "c")

    seen = [delta for batch in [one async for one in batches(stream())] for delta in batch]
    assert 0 < len(seen) < 1_000
