"""A chat of plain lines whose user writes the next line of a script."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator

from rolling_chat.agent import Chat
from rolling_chat.plain.chat import _converse
from rolling_chat.plain.commands import PlainCommands
from rolling_chat.plain.console import Console, EndOfInputError
from rolling_chat.plain.turns import Turns
from tests.support.patience import PATIENCE_SECONDS

CTRL_C = None


class ScriptedConsole(Console):
    """Reads the lines of a script, `CTRL_C` for an interruption, and keeps what is written."""

    def __init__(self, lines: Iterator[str | None]) -> None:
        self.output = io.StringIO()
        super().__init__(self.output)
        self._lines = lines
        self.written = asyncio.Event()

    def write(self, text: str = "") -> None:
        super().write(text)
        self.written.set()

    async def hears(self, words: str) -> None:
        """Wait until some words were written."""
        while words not in self.output.getvalue():
            self.written.clear()
            await asyncio.wait_for(self.written.wait(), PATIENCE_SECONDS)

    async def read(self, prompt: str) -> str | None:
        self.write(prompt)
        try:
            return next(self._lines)
        except StopIteration:
            raise EndOfInputError from None


async def converse(chat: Chat, *lines: str | None) -> list[str]:
    """Let the user write some lines and end the input; return all that was written."""
    console = ScriptedConsole(iter(lines))
    turns = Turns(chat, console)
    await _converse(chat, console, turns, PlainCommands(chat, console, turns))
    return console.output.getvalue().splitlines()
