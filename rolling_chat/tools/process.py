"""Run child processes in groups of their own, with limited memory, and without leaving any behind."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rolling_chat.tools.decoding import MAX_RESULT_BYTES
from rolling_chat.tools.leftover_processes import CHILDREN, Child, kill_children
from rolling_chat.tools.process_groups import end_group, group_options, listen

_CHUNK = 65_536
_LINGER = 0.25  # seconds to wait for more output after the command itself has ended


@dataclass(slots=True)
class Output:
    """The output of a process, limited to its first and its last `limit` / 2 bytes."""

    limit: int = MAX_RESULT_BYTES
    total: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: deque[bytes] = field(default_factory=deque)
    _tail_size: int = 0

    def add(self, data: bytes) -> None:
        """Add the next piece of output, dropping bytes from the middle beyond the limit."""
        self.total += len(data)
        room = self.limit // 2 - len(self._head)
        self._head += data[: max(room, 0)]
        rest = data[max(room, 0) :]
        if not rest:
            return
        self._tail.append(rest)
        self._tail_size += len(rest)
        while self._tail_size - len(self._tail[0]) >= self.limit // 2:
            self._tail_size -= len(self._tail.popleft())

    @property
    def left_out(self) -> int:
        """The number of bytes dropped from the middle."""
        return self.total - len(self._head) - self._tail_size

    def since(self, start: int) -> tuple[bytes, int]:
        """Return the output after the first `start` bytes, and how many bytes of it were dropped."""
        head, tail = self.parts
        first = self.total - len(tail)  # the index of the tail's first byte
        if start >= first:
            return tail[start - first :], 0
        return head[start:] + tail, first - max(start, len(head))

    @property
    def parts(self) -> tuple[bytes, bytes]:
        """Return the output's beginning, and its end if bytes between were dropped."""
        return bytes(self._head), b"".join(self._tail)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: `code` is its exit code, negative for the signal that killed it.

    `left` are the processes that it left running in the background.
    """

    output: Output
    code: int
    timed_out: bool
    left: tuple[Child, ...]


async def run_process(
    arguments: Sequence[str],
    *,
    folder: Path,
    environ: Mapping[str, str],
    timeout: float,  # noqa: ASYNC109  # the process is ended cleanly, not abandoned
    limit: int = MAX_RESULT_BYTES,
    pass_fds: Sequence[int] = (),
    on_output: Callable[[bytes], None] | None = None,
    is_sandboxed: bool = False,
    standard_input: bytes = b"",
    errors: Output | None = None,
) -> Ended:
    """Run a program with its output and errors interleaved, and `standard_input` on its standard input.

    With `errors`, its standard error goes there instead. `pass_fds` are descriptors that it inherits.
    `on_output` gets the output as it arrives. `is_sandboxed`: the program is a sandbox, and keeps a process
    of its own around those that it leaves running. After `timeout` seconds, or if the task is cancelled, the
    whole process group is asked to end and then killed, as are processes that left the group. Processes that
    the program leaves in the background when it ends by itself keep running. Raises OSError if it cannot be
    started.
    """
    with ExitStack() as listening:
        with ExitStack() as ends, _as_file(standard_input) as stdin:
            pipe, writing = await _open_pipe(Output(limit), on_output, listening, ends)
            pipes, streams = [pipe], {"stdin": stdin, "stdout": writing, "stderr": writing}
            if errors is not None:
                pipe, streams["stderr"] = await _open_pipe(errors, None, listening, ends)
                pipes.append(pipe)
            process = await _start(arguments, folder, environ, pass_fds, streams, is_sandboxed=is_sandboxed)
        return await _wait(process, pipes, timeout)


async def _wait(
    process: asyncio.subprocess.Process,
    pipes: Sequence[Pipe],
    timeout: float,  # noqa: ASYNC109  # as above
) -> Ended:
    """Wait for the end of a program; end it after the timeout or if the task is cancelled."""
    timed_out = False
    try:
        try:
            async with asyncio.timeout(timeout):
                await process.wait()
        except TimeoutError:
            timed_out = True
            await end_group(process)
        for pipe in pipes:
            await pipe.drained(_LINGER)
    finally:
        try:
            is_cancelled = process.returncode is None
            if is_cancelled:
                await end_group(process)
        finally:
            left = CHILDREN.ended(process.pid)
            if timed_out or is_cancelled:
                kill_children(left)
                left = ()
    return Ended(pipes[0].output, process.returncode or 0, timed_out, left)


async def _open_pipe(
    output: Output, on_output: Callable[[bytes], None] | None, listening: ExitStack, ends: ExitStack
) -> tuple[Pipe, int]:
    """Open a pipe that fills `output`; return it and its write end, which `ends` closes."""
    reading, writing = os.pipe()
    ends.callback(os.close, writing)
    pipe = Pipe(output, on_output)
    listening.callback(await listen(pipe, reading))
    return pipe, writing


@contextmanager
def _as_file(data: bytes) -> Iterator[int]:
    """Yield a descriptor from which `data` can be read, whatever its size, even if nobody reads it."""
    if not data:
        yield asyncio.subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file.fileno()


async def _start(
    arguments: Sequence[str],
    folder: Path,
    environ: Mapping[str, str],
    pass_fds: Sequence[int],
    streams: Mapping[str, int],
    *,
    is_sandboxed: bool,
) -> asyncio.subprocess.Process:
    """Start a program in a group of its own; if cancelled meanwhile, wait for its start and then end it.

    A program runs, and may have children, before asyncio reports that it was started. If cancelled in that
    moment, asyncio would kill only the program itself.
    """
    is_cancelled = False
    with CHILDREN.starting():
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                *arguments,
                cwd=folder,
                env={**environ, **CHILDREN.mark},
                pass_fds=pass_fds,
                stdin=streams["stdin"],
                stdout=streams["stdout"],
                stderr=streams["stderr"],
                **group_options(),
            )
        )
        while not starting.done():
            try:
                await asyncio.wait({starting})
            except asyncio.CancelledError:
                is_cancelled = True
        if starting.exception() is None:
            CHILDREN.began(starting.result().pid, is_sandboxed=is_sandboxed)
    if not is_cancelled:
        return starting.result()
    if starting.exception() is None:
        await end_group(starting.result())
        kill_children(CHILDREN.ended(starting.result().pid))
    raise asyncio.CancelledError


class Pipe(asyncio.Protocol):
    """Collects the data from a pipe, and detects when it has been quiet for a while."""

    def __init__(self, output: Output, on_output: Callable[[bytes], None] | None) -> None:
        self.output = output
        self._on_output = on_output
        self._heard = asyncio.Event()
        self.closed = False

    def data_received(self, data: bytes) -> None:
        """Keep a piece of output, and pass it on."""
        self.output.add(data)
        self._heard.set()
        if self._on_output is not None:
            self._on_output(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """Record that no writer is left."""
        self.closed = True
        self._heard.set()

    async def drained(self, quiet: float) -> None:
        """Wait until every writer has closed the pipe, or nothing has arrived for `quiet` seconds."""
        with suppress(TimeoutError):
            while not self.closed:
                self._heard.clear()
                async with asyncio.timeout(quiet):
                    await self._heard.wait()
