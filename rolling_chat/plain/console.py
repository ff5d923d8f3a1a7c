"""The terminal as lines: what is written is clean text, and a line is read without holding up the rest."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from typing import TextIO

from rolling_chat.text import without_controls


class Console:
    """Writes lines and reads lines; Ctrl+C is passed on to whoever asked for it last."""

    def __init__(self, output: TextIO | None = None) -> None:
        self._output = output or sys.stdout
        self._reading: asyncio.Future[str] | None = None
        self._interrupted: list[asyncio.Event] = []
        # history and editing of the line, where Python has it
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401, PLC0415

    def write(self, text: str = "") -> None:
        """Write lines of text; what would control the terminal is shown as codes."""
        print(without_controls(text), file=self._output, flush=True)

    async def read(self, prompt: str) -> str | None:
        """Read a line; None at the end of the input, or where Ctrl+C was pressed.

        A line that was still being read when Ctrl+C was pressed is given to the next who asks.
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
        """Yield an event that Ctrl+C sets while it is the newest that was asked for."""
        event = asyncio.Event()
        self._interrupted.append(event)
        try:
            yield event
        finally:
            self._interrupted.remove(event)

    def interrupt(self) -> None:
        """Pass on a Ctrl+C."""
        if self._interrupted:
            self._interrupted[-1].set()


class EndOfInputError(Exception):
    """There will be no more lines: the user has ended the input."""


def _read_line(prompt: str) -> str:
    return input(prompt)
