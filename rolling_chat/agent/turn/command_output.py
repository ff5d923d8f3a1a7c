"""Report the newest lines of a running tool's output, a few times a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rolling_chat.events import Emit, ToolProgress
from rolling_chat.messages import ToolCall
from rolling_chat.text import visible
from rolling_chat.tools.decoding import decode

_MAX_BYTES = 8_192  # of the newest output
_MAX_LINES = 8
_MAX_LINE = 400  # characters
_INTERVAL = 0.1  # seconds between two events


class OutputWatch:
    """Collects the output of a call, and emits its newest lines."""

    def __init__(self, call: ToolCall, emit: Emit) -> None:
        self._call = call
        self._emit = emit
        self._newest = bytearray()
        self._bytes = 0
        self._has_news = asyncio.Event()

    def hear(self, data: bytes) -> None:
        """Add a piece of output."""
        self._bytes += len(data)
        self._newest += data[-_MAX_BYTES:]
        del self._newest[:-_MAX_BYTES]
        self._has_news.set()

    async def report(self) -> None:
        """Emit the newest lines whenever there are any, until cancelled."""
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            await self._emit(ToolProgress(self._call, newest_lines(bytes(self._newest)), self._bytes))
            await asyncio.sleep(_INTERVAL)


@asynccontextmanager
async def watch_output(call: ToolCall, emit: Emit) -> AsyncIterator[OutputWatch]:
    """Watch the output of a call until the block ends."""
    watch = OutputWatch(call, emit)
    reporting = asyncio.create_task(watch.report())
    try:
        yield watch
    finally:
        reporting.cancel()
        await asyncio.wait({reporting})


def newest_lines(data: bytes) -> str:
    """Return the last lines of the output, each cut to a readable length."""
    text = decode(data).rstrip("\n")
    lines = text.split("\n")[-_MAX_LINES:]
    # only the text after the last carriage return of a progress bar is visible
    newest = [line.rstrip("\r").rpartition("\r")[2] for line in lines]
    return visible("\n".join(line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}…" for line in newest))
