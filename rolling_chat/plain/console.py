"""The terminal as lines: clean text is written, and reading a line does not block the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from typing import TextIO

from rolling_chat.text import without_controls


class Console:
    """A console that writes and reads lines; Ctrl+C goes to the newest `interruptible` block."""

    def __init__(self, output: TextIO | None = None) -> None:
        self._output = output or sys.stdout
        self._reading: asyncio.Future[str] | None = None
        self._interrupted: list[asyncio.Event] = []
        # line editing and history, if Python has readline
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415

    def write(self, text: str = "") -> None:
        """Write lines of text, with control characters shown as codes."""
        print(without_controls(text), file=self._output, flush=True)

    async def read(self, prompt: str) -> str | None:
        """Read a line; return None if Ctrl+C was pressed. Raises EndOfInputError.

        If Ctrl+C interrupts, reading continues, and the next call returns that line.
        """
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(asyncio.to_thread(_read_line, prompt))
        else:
            self.write(prompt)
        with self.interruptible() as interrupted:
            waiting = asyncio.ensure_future(interrupted.wait())
            try:
                await asyncio.wait((self._reading, waiting), return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
            if not self._reading.done():
                return None
        try:
            return self._reading.result()
        except EOFError:
            raise EndOfInputError from None

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[asyncio.Event]:
        """Yield an event that Ctrl+C sets; of nested blocks, only the innermost one's."""
        event = asyncio.Event()
        self._interrupted.append(event)
        try:
            yield event
        finally:
            self._interrupted.remove(event)

    def interrupt(self) -> None:
        """Handle a Ctrl+C."""
        if self._interrupted:
            self._interrupted[-1].set()


class EndOfInputError(Exception):
    """The user has ended the input."""


def _read_line(prompt: str) -> str:
    return input(prompt)
