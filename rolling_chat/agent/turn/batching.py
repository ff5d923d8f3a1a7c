"""Deltas of a stream, joined: a store that commits and a screen that paints want fewer and larger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from rolling_chat.providers.protocol import Delta, Finished, ReasoningDelta, TextDelta

INTERVAL = 0.033
"""Seconds between two batches at least: the screen paints 30 times a second."""

_MAX_WAITING = 10_000  # deltas; a stream whose batches nobody takes is read no further
_MAX_READING = 0.01  # seconds without a pause: what a connection has buffered comes without one of its own
_CLOSING = 2.0  # seconds that a connection is given to close


async def batches(stream: AsyncIterator[Delta], interval: float = INTERVAL) -> AsyncGenerator[list[Delta]]:
    """Yield the deltas since the last batch, adjacent ones of a kind joined; at least one delta each.

    The first delta comes at once, later ones within `interval` seconds, and the end of the stream
    waits for nothing. An error of the stream is raised after all that came before it. Closing
    this closes the stream.
    """
    waiting: list[Delta] = []
    came, taken = asyncio.Event(), asyncio.Event()
    reader = asyncio.create_task(_read(stream, waiting, came, taken))
    reader.add_done_callback(lambda _: came.set())
    try:
        while waiting or not reader.done():
            await came.wait()
            came.clear()
            batch, waiting[:] = join(waiting), []
            taken.set()
            if batch:
                yield batch
            if not reader.done():
                await asyncio.wait({reader}, timeout=interval)
        reader.result()
    finally:
        await _close(reader, stream)


def join(deltas: Sequence[Delta]) -> list[Delta]:
    """Return the deltas in order, adjacent pieces of text joined."""
    joined: list[Delta] = []
    for delta in deltas:
        last = joined[-1] if joined else None
        match last, delta:
            case TextDelta(before), TextDelta(text):
                joined[-1] = TextDelta(before + text)
            case ReasoningDelta(before), ReasoningDelta(text):
                joined[-1] = ReasoningDelta(before + text)
            case _:
                joined.append(delta)
    return joined


async def _read(
    stream: AsyncIterator[Delta], waiting: list[Delta], came: asyncio.Event, taken: asyncio.Event
) -> None:
    now = asyncio.get_running_loop().time
    paused = now()
    async for delta in stream:
        waiting.append(delta)
        came.set()
        if isinstance(delta, Finished):
            return
        if now() - paused > _MAX_READING:
            await asyncio.sleep(0)
            paused = now()
        if len(waiting) >= _MAX_WAITING:
            taken.clear()
            await taken.wait()


async def _close(reader: asyncio.Task[None], stream: AsyncIterator[Delta]) -> None:
    if not reader.done():
        reader.cancel()
        await asyncio.wait({reader}, timeout=_CLOSING)
    if reader.done() and not reader.cancelled():
        reader.exception()  # looked at, so that asyncio does not complain of it
    if reader.done() and isinstance(stream, AsyncGenerator):
        await stream.aclose()
