"""Join the deltas of a stream into batches, to save commits of the store and paints of the screen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from rolling_chat.providers.protocol import Delta, Finished, ReasoningDelta, TextDelta

INTERVAL = 0.045
"""The minimum number of seconds between two batches: the screen paints each, some 20 a second."""

_MAX_WAITING = 10_000  # deltas; reading stops until they are consumed
_MAX_READING = 0.005  # seconds without a pause; a connection with buffered data makes none of its own
_PAUSE = 16  # rounds of the event loop, more than the steps from a batch or a key to its paint
_CLOSING = 2.0  # seconds for a connection to close


async def batches(stream: AsyncIterator[Delta], interval: float = INTERVAL) -> AsyncGenerator[list[Delta]]:
    """Yield batches of at least one delta, with adjacent deltas of the same kind joined.

    The first delta is yielded at once, later ones within `interval` seconds, and the last without delay. An
    error of the stream is raised after all deltas before it. Closing this closes the stream.
    """
    waiting: list[Delta] = []
    arrived, consumed = asyncio.Event(), asyncio.Event()
    reader = asyncio.create_task(_read(stream, waiting, arrived, consumed))
    reader.add_done_callback(lambda _: arrived.set())
    try:
        while waiting or not reader.done():
            await arrived.wait()
            arrived.clear()
            batch, waiting[:] = join(waiting), []
            consumed.set()
            if batch:
                yield batch
            if not reader.done():
                await asyncio.wait({reader}, timeout=interval)
        reader.result()
    finally:
        await _close(reader, stream)


def join(deltas: Sequence[Delta]) -> list[Delta]:
    """Return the deltas in order, with adjacent pieces of text joined."""
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
    stream: AsyncIterator[Delta], waiting: list[Delta], arrived: asyncio.Event, consumed: asyncio.Event
) -> None:
    loop = asyncio.get_running_loop()
    others = _OtherWork(loop)
    read, last = 0.0, loop.time()  # seconds of reading since the last pause
    async for delta in stream:
        waiting.append(delta)
        arrived.set()
        if isinstance(delta, Finished):
            return
        now = loop.time()
        read += 0.0 if others.has_run() else now - last
        last = now
        if read > _MAX_READING:
            for _ in range(_PAUSE):
                await asyncio.sleep(0)
            read, last = 0.0, loop.time()
        if len(waiting) >= _MAX_WAITING:
            consumed.clear()
            await consumed.wait()


class _OtherWork:
    """Detects whether the event loop has done other work since the last check."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._has_run = True

    def has_run(self) -> bool:
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
        reader.exception()  # retrieved, so that asyncio does not log it
    if reader.done() and isinstance(stream, AsyncGenerator):
        await stream.aclose()
