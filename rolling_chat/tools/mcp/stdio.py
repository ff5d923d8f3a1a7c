"""Run an MCP server that is a program, and exchange messages over its stdin and stdout.

The SDK has such a transport too. This one limits the size of messages, reads in linear time, keeps stderr off
the screen, and starts and ends programs in the same way as commands.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from rolling_chat.programs import FOR_USER, find_program
from rolling_chat.text import exact, one_line
from rolling_chat.tools.leftover_processes import CHILDREN
from rolling_chat.tools.mcp.peer import ServerError
from rolling_chat.tools.process_groups import end_group, group_options

log = logging.getLogger("rolling_chat.tools.mcp")

MAX_MESSAGE = 30_000_000  # bytes
_CHUNK = 65_536
_LARGE = 100_000  # bytes; larger messages are parsed in a thread
_GRACE = 1.0  # seconds for a server to end by itself once its stdin is closed
_MAX_LINE = 1_000  # characters of stderr
_MAX_LINES = 2_000  # lines of stderr to log
_LAST_LINES = 5

Streams: TypeAlias = tuple[
    MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]
]


@dataclass(slots=True)
class _Stderr:
    """Logs a server's stderr, and keeps its last lines, which may explain why it ended."""

    name: str
    clean: Callable[[str], str]
    last: deque[str] = field(default_factory=lambda: deque(maxlen=_LAST_LINES))
    _lines: int = 0

    async def read(self, stream: asyncio.StreamReader) -> None:
        """Read to the end."""
        rest = b""
        while chunk := await stream.read(_CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._take(line)
            rest = rest[:_MAX_LINE]
        self._take(rest)

    def _take(self, line: bytes) -> None:
        text = one_line(exact(self.clean(line[: 4 * _MAX_LINE].decode("utf-8", "replace"))), _MAX_LINE)
        if not text.strip():
            return
        self.last.append(text)
        self._lines += 1
        if self._lines <= _MAX_LINES:
            log.info("%s says: %s", self.name, text)
        elif self._lines == _MAX_LINES + 1:
            log.info("%s says more, which is not logged", self.name)


def find_command(command: str, folder: Path, environ: Mapping[str, str]) -> str:
    """Return the program that a server's command names. Raises ServerError if there is none.

    A plain name is searched on the PATH outside of the working folder, like every program that we start.
    """
    expanded = Path(command).expanduser()
    if expanded.name != command:
        return str(folder / expanded)
    found = find_program(command, environ, folder)
    if found is None:
        raise ServerError(
            f"cannot be started: there is no program {one_line(exact(command), 80)} on the PATH"
        )
    return found


@asynccontextmanager
async def stdio_transport(
    name: str,
    words: Sequence[str],
    environ: Mapping[str, str],
    folder: Path,
    *,
    clean: Callable[[str], str],
    ended: Callable[[str], None],
) -> AsyncIterator[Streams]:
    """Run a server's program while the context is open; `ended` gets the reason if it ends by itself.

    `clean` removes secrets from its stderr. Raises ServerError if it cannot be started.
    """
    process = await _start(words, environ, folder)
    assert process.stderr
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage](0)
    stderr = _Stderr(name, clean)
    logging_it = asyncio.create_task(stderr.read(process.stderr))

    async def read() -> str:
        try:
            return await _read_messages(process, to_client)
        except Exception:
            log.exception("reading from the server %s broke", name)
            return "could not be read"
        finally:
            to_client.close()

    async def watch() -> None:
        fault = await asyncio.shield(reading)
        if not fault:
            await _wait(process, _GRACE)
            await asyncio.wait({logging_it}, timeout=_GRACE)
        ended(fault or _reason(process, stderr))

    async def write() -> None:
        assert process.stdin
        with suppress(OSError):
            async for message in from_client:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()

    reading = asyncio.create_task(read())
    writing, watching = asyncio.create_task(write()), asyncio.create_task(watch())
    try:
        yield from_server, to_server
    finally:
        with anyio.CancelScope(shield=True):
            if reading.done():  # it ended by itself: wait for the reason
                await asyncio.wait({watching}, timeout=2 * _GRACE)
            for task in (watching, reading, writing):
                task.cancel()
            await _end(process)
            logging_it.cancel()
            await asyncio.wait({watching, reading, writing, logging_it})
        for stream in (to_client, from_server, to_server, from_client):
            stream.close()


async def _start(
    words: Sequence[str], environ: Mapping[str, str], folder: Path
) -> asyncio.subprocess.Process:
    try:
        with CHILDREN.starting():
            process = await asyncio.create_subprocess_exec(
                *words,
                cwd=folder,
                env={**environ, **FOR_USER},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                **group_options(),
            )
            CHILDREN.serves(process.pid)
            return process
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        program = one_line(exact(words[0]), 80)
        raise ServerError(f"cannot be started: {program}: {why}") from error


async def _read_messages(
    process: asyncio.subprocess.Process, to_client: MemoryObjectSendStream[SessionMessage | Exception]
) -> str:
    """Forward the messages of a server until it closes its stdout; return an error, if any."""
    assert process.stdout
    parts: list[bytes] = []
    size = 0
    while chunk := await process.stdout.read(_CHUNK):
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            message = b"".join((*parts, line))
            parts, size = [], 0
            await _forward(message, to_client)
        parts.append(rest)
        size += len(rest)
        if size > MAX_MESSAGE:
            return f"sent a message of more than {MAX_MESSAGE // 1_000_000} MB"
    return ""


async def _forward(line: bytes, to_client: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    if not line.strip():
        return
    try:
        message = await asyncio.to_thread(_parsed, line) if len(line) > _LARGE else _parsed(line)
    except ValueError:
        # some programs print to stdout what belongs on stderr
        log.info(
            "a line on a server's stdout is no message: %s", one_line(line[:200].decode("utf-8", "replace"))
        )
        return
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        await to_client.send(SessionMessage(message))


def _parsed(line: bytes) -> mcp_types.JSONRPCMessage:
    return mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close a server's stdin, which asks it to end; end its whole process group if it does not."""
    assert process.stdin
    with suppress(OSError):
        process.stdin.close()
    try:
        await _wait(process, _GRACE)
        await end_group(process)
    finally:
        CHILDREN.served(process.pid)


async def _wait(process: asyncio.subprocess.Process, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await process.wait()


def _reason(process: asyncio.subprocess.Process, stderr: _Stderr) -> str:
    code = process.returncode
    how = "closed its stdout" if code is None else f"ended with exit code {code}"
    if code is not None and code < 0:
        how = f"was killed by signal {-code}"
    last_line = next((line for line in reversed(stderr.last)), "")
    return f"{how}: {one_line(last_line, 200)}" if last_line else how
