"""The input of `-p --input-format stream-json`: messages on stdin, one JSON object per line.

`{"type": "user", "text": "…"}` is a message; Claude Code's form, with the text in `message.content`, is
accepted as well. `{"type": "interrupt"}` stops the running turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TextIO

from rolling_chat.lenient_json import read_json
from rolling_chat.messages import Json
from rolling_chat.providers.background_thread import in_background
from rolling_chat.text import printable

_MAX_BYTES = 16_000_000  # of a line
_MAX_WAITING = 1_000  # messages
_SHOWN = 200  # characters of an error
_FORM = '{"type": "user", "text": "…"} or {"type": "interrupt"}'


@dataclass(frozen=True, slots=True)
class InputError:
    """An input line that is no message; `line` is one line for the user that says which and why."""

    line: str


async def messages(stream: TextIO | None, interrupt: Callable[[], None]) -> AsyncGenerator[str | InputError]:
    """Yield the messages of `stream` until it ends; call `interrupt` as soon as a line requests it."""
    if stream is None:
        return
    waiting: asyncio.Queue[str | InputError | None] = asyncio.Queue(_MAX_WAITING)
    reader = asyncio.create_task(_read(stream, waiting, interrupt))
    try:
        while (message := await waiting.get()) is not None:
            yield message
    finally:
        reader.cancel()


async def _read(
    stream: TextIO, waiting: asyncio.Queue[str | InputError | None], interrupt: Callable[[], None]
) -> None:
    number = 0
    while line := await in_background(partial(stream.buffer.readline, _MAX_BYTES)):
        number += 1
        if len(line) == _MAX_BYTES and not line.endswith(b"\n"):
            await _skip(stream)
            await waiting.put(InputError(f"line {number}: longer than {_MAX_BYTES:,} bytes"))
        elif line.strip():
            try:
                message = _message(line)
            except ValueError as error:
                await waiting.put(InputError(f"line {number}: {printable(str(error), _SHOWN)}"))
                continue
            if message is None:
                interrupt()
            else:
                await waiting.put(message)
    await waiting.put(None)


async def _skip(stream: TextIO) -> None:
    """Read to the end of a line."""
    while (part := await in_background(partial(stream.buffer.readline, _MAX_BYTES))) and part[-1:] != b"\n":
        pass


def _message(line: bytes) -> str | None:
    """Return the text of a message; None for an interrupt. Raises ValueError."""
    given = read_json(line.decode("utf-8", "replace"))
    match given:
        case {"type": "interrupt"} | {"type": "control_request", "request": {"subtype": "interrupt"}}:
            return None
        case {"type": "user", "text": str(text)} | {"type": "user", "message": {"content": str(text)}}:
            return text
        case {"type": "user", "message": {"content": [*parts]}}:
            return "\n\n".join(map(_text_of, parts))
        case _:
            raise ValueError(f"not a message such as {_FORM}")


def _text_of(part: Json) -> str:
    if isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    raise ValueError("a part of the message is not text")
