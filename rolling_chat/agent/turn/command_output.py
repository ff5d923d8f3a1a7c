"""The output of a running tool, told while it runs: its newest lines, a few times a second."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rolling_chat.events import Emit, ToolProgress
from rolling_chat.messages import ToolCall
from rolling_chat.text import visible
from rolling_chat.tools.decoding import decode

_KEPT_BYTES = 8_192  # of the newest output
_MAX_LINES = 8
_MAX_LINE = 400  # characters
_INTERVAL = 0.1  # seconds between two events


class OutputWatch:
    """Collects what a call writes, and emits its newest lines until the watch ends."""

    def __init__(self, call: ToolCall, emit: Emit) -> None:
        self._call = call
        self._emit = emit
        self._newest = bytearray()
        self._bytes = 0
        self._heard = asyncio.Event()

    def hear(self, data: bytes) -> None:
        """Add a piece of output."""
        self._bytes += len(data)
        self._newest += data[-_KEPT_BYTES:]
        del self._newest[:-_KEPT_BYTES]
        self._heard.set()

    async def tell(self) -> None:
        """Emit the newest lines whenever there are any, until cancelled."""
        while True:
            await self._heard.wait()
            self._heard.clear()
            await self._emit(ToolProgress(self._call, newest_lines(bytes(self._newest)), self._bytes))
            await asyncio.sleep(_INTERVAL)


@asynccontextmanager
async def watch_output(call: ToolCall, emit: Emit) -> AsyncIterator[OutputWatch]:
    """Watch the output of a call for as long as the block lasts."""
    watch = OutputWatch(call, emit)
    telling = asyncio.create_task(watch.tell())
    try:
        yield watch
    finally:
        telling.cancel()
        await asyncio.wait({telling})


def newest_lines(data: bytes) -> str:
    """Return the last lines of output, each cut to a readable length."""
    text = decode(data).rstrip("\n")
    lines = text.split("\n")[-_MAX_LINES:]
    # what a progress bar overwrites is behind its last carriage return
    newest = [line.rstrip("\r").rpartition("\r")[2] for line in lines]
    return visible("\n".join(line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]}…" for line in newest))
