"""stdin and stdout reserved for the protocol: nothing else reads from them or prints to them.

Threads read and write, so that the pipes stay blocking: making them non-blocking would affect every other
process that shares them.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import BinaryIO

MAX_LINE = 64_000_000
"""The maximum bytes of one message; a longer one is skipped."""

_MAX_UNREAD = 100  # messages read ahead of their handling
_MAX_UNWRITTEN = 1_000_000  # bytes that may wait for a client that does not read
_FLUSH_SECONDS = 2.0

TOO_LONG = b"too long"
"""Replaces a line of more than MAX_LINE bytes."""


def take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Take over this process's stdin and stdout and return them; later prints go to stderr.

    Raises OSError if they are closed.
    """
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # stderr is closed
        os.dup2(nothing, 1)
    os.close(nothing)
    return incoming, outgoing


class LineReader:
    """Reads lines in a thread, until the end of the file, for one event loop."""

    def __init__(self, file: BinaryIO, loop: asyncio.AbstractEventLoop) -> None:
        self._file = file
        self._loop = loop
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(_MAX_UNREAD)
        self._is_over = False
        threading.Thread(target=self._read, name="acp input", daemon=True).start()

    async def next(self) -> bytes | None:
        """Return the next line; None at the end, TOO_LONG for a line that was too long."""
        line = None if self._is_over else await self._lines.get()
        self._is_over = self._is_over or line is None
        self._room.release()
        return None if self._is_over else line

    def end(self) -> None:
        """Stop reading: `next` returns None from now on."""
        self._is_over = True
        self._lines.put_nowait(None)

    def _read(self) -> None:
        with suppress(OSError, ValueError), self._file:
            while line := self._file.readline(MAX_LINE):
                is_whole = len(line) < MAX_LINE or line.endswith(b"\n")
                self._room.acquire()
                self._put(line if is_whole else self._skipped())
        self._put(None)

    def _skipped(self) -> bytes:
        while rest := self._file.readline(MAX_LINE):
            if rest.endswith(b"\n"):
                break
        return TOO_LONG

    def _put(self, line: bytes | None) -> None:
        _call_in(self._loop, partial(self._lines.put_nowait, line))


class LineWriter:
    """Writes in a thread; `broken` is called once the reader is gone."""

    def __init__(self, file: BinaryIO, loop: asyncio.AbstractEventLoop, broken: Callable[[], None]) -> None:
        self._file = file
        self._loop = loop
        self._broken = broken
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._unwritten = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self.is_broken = False
        self._thread = threading.Thread(target=self._write, name="acp output", daemon=True)
        self._thread.start()

    async def write(self, data: bytes) -> None:
        """Write a line; wait while the client is far behind. Raises ConnectionError once it is gone."""
        await self._has_room.wait()
        if self.is_broken:
            raise ConnectionError("the client is gone")
        self._unwritten += len(data)
        if self._unwritten > _MAX_UNWRITTEN:
            self._has_room.clear()
        self._queue.put(data)

    async def close(self) -> None:
        """Write the remaining data, if the client still reads."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join, _FLUSH_SECONDS)

    def _write(self) -> None:
        with suppress(OSError, ValueError), self._file:
            self._write_all()

    def _write_all(self) -> None:
        while (data := self._queue.get()) is not None:
            try:
                self._file.write(data)
                if self._queue.empty():
                    self._file.flush()
            except (OSError, ValueError):
                _call_in(self._loop, self._break)
                return
            _call_in(self._loop, partial(self._wrote, len(data)))
        try:
            self._file.flush()
        except (OSError, ValueError):
            _call_in(self._loop, self._break)

    def _wrote(self, size: int) -> None:
        self._unwritten -= size
        if self._unwritten <= _MAX_UNWRITTEN:
            self._has_room.set()

    def _break(self) -> None:
        if not self.is_broken:
            self.is_broken = True
            self._has_room.set()
            self._broken()


def _call_in(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop has ended meanwhile
        loop.call_soon_threadsafe(call)
