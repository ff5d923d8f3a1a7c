"""Deltas of a stream, joined: a store that commits and a screen that paints want fewer and larger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from rolling_chat.providers.protocol import Delta, Finished, ReasoningDelta, TextDelta

INTERVAL = 0.045
"""Seconds between two batches at least: the screen paints each, some 20 a second."""

_MAX_WAITING = 10_000  # deltas; a stream whose batches nobody takes is read no further
_MAX_READING = 0.005  # seconds without a pause: what a connection has buffered comes without one of its own
_PAUSE = 16  # rounds of the event loop: more than the steps from a batch or a key to its paint
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
    loop = asyncio.get_running_loop()
    others = _Others(loop)
    read, last = 0.0, loop.time()  # seconds of reading since the others had a pause
    async for delta in stream:
        waiting.append(delta)
        came.set()
        if isinstance(delta, Finished):
            return
        now = loop.time()
        read += 0.0 if others.had_a_turn() else now - last
        last = now
        if read > _MAX_READING:
            for _ in range(_PAUSE):
                await asyncio.sleep(0)
            read, last = 0.0, loop.time()
        if len(waiting) >= _MAX_WAITING:
            taken.clear()
            await taken.wait()


class _Others:
    """Tells whether the event loop has gone on to its other work since it was last asked."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._has_run = True

    def had_a_turn(self) -> bool:
        if not self._has_run:
            return False
        self._has_run = False
        self._loop.call_soon(self._run)
        return True

    def _run(self) -> None:
        self._has_run = True


async def _close(reader: asyncio.Task[None], stream: AsyncIterator[Delta]) -> None:
    if not reader.done():
        reader.cancel()
        await asyncio.wait({reader}, timeout=_CLOSING)
    if reader.done() and not reader.cancelled():
        reader.exception()  # looked at, so that asyncio does not complain of it
    if reader.done() and isinstance(stream, AsyncGenerator):
        await stream.aclose()
