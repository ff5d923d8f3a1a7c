"""Start, read and end commands in the background, and report those that have ended by themselves."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Thread

from rolling_chat.text import one_line
from rolling_chat.tools.leftover_processes import CHILDREN, Child, end_children
from rolling_chat.tools.process import Output, Pipe
from rolling_chat.tools.process_groups import end_group, group_options, listen
from rolling_chat.tools.sandbox.sandbox import Enclosed

MAX_KEPT_BYTES = 1_000_000
"""The maximum output of one command that is kept: its beginning and its end."""

MAX_RUNNING = 20
"""The maximum number of commands that run at once."""

_MAX_ENDED = 20  # ended commands that can still be read
_MAX_READS = 16  # reads of a pipe, of 64 or 256 kB each, which is as much as is kept
_LINGER = 0.25  # seconds to wait for more output after the command itself has ended
_SHOWN = 60  # characters of a command in a line


@dataclass(slots=True, eq=False)
class BackgroundCommand:
    """One command that runs, or ran, in the background.

    `owner` is the session whose model started it. `code` is its exit code, negative for a signal, None while
    it runs. `was_ended`: it was ended on request. `left` are the processes that it left running.
    """

    id: str
    command: str
    owner: str
    pid: int
    output: Output
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    code: int | None = None
    was_ended: bool = False
    left: tuple[Child, ...] = ()
    over: asyncio.Event = field(default_factory=asyncio.Event)
    _read: int = 0  # bytes that the model has read

    async def wait(self) -> object:
        """Wait until it has ended."""
        return await self.over.wait()

    @property
    def state(self) -> str:
        """The state of the command: `running for 12 s`, `exit code 1 after 3 s`."""
        if self.code is None:
            return f"running for {time.monotonic() - self.started:.0f} s"
        how = "ended" if self.was_ended else f"exit code {self.code}"
        if self.code < 0 and not self.was_ended:
            how = f"killed by signal {-self.code}"
        return f"{how} after {self.seconds:.0f} s"

    def __str__(self) -> str:
        return f"{self.id} ({one_line(self.command, _SHOWN)})"

    async def take_new(self) -> tuple[bytes, int]:
        """Return the output since the last call, and the number of bytes of it that were not kept.

        Output may still be in the pipe, which the event loop reads when it has nothing else to do, so this
        yields to the loop first.
        """
        for _ in range(_MAX_READS):
            before = self.output.total
            await asyncio.sleep(0)  # the loop polls the pipe
            await asyncio.sleep(0)  # the loop reads it
            if self.output.total == before:
                break
        new = self.output.since(self._read)
        self._read = self.output.total
        return new


class BackgroundCommands:
    """The background commands of this process; `on_end` is called for each that ends by itself."""

    def __init__(self) -> None:
        self._commands: dict[str, BackgroundCommand] = {}
        self._numbers = itertools.count(1)
        self._news: list[BackgroundCommand] = []
        self._watching: set[asyncio.Task[None]] = set()
        self.on_end: Callable[[BackgroundCommand], None] | None = None

    def all(self, owner: str = "") -> tuple[BackgroundCommand, ...]:
        """Return the commands that run or have ended recently, of one session or of all."""
        return tuple(one for one in self._commands.values() if not owner or one.owner == owner)

    def running(self) -> tuple[BackgroundCommand, ...]:
        """Return the commands that run."""
        return tuple(one for one in self._commands.values() if one.code is None)

    def find(self, id: str, owner: str = "") -> BackgroundCommand | None:
        """Return the command with this id; None if there is none."""
        return next((one for one in self.all(owner) if one.id == id.strip()), None)

    async def start(
        self,
        command: str,
        owner: str,
        enclosing: AbstractAsyncContextManager[Enclosed],
        folder: Path,
        *,
        is_sandboxed: bool,
    ) -> BackgroundCommand:
        """Start a command in `enclosing`, which is closed when the command has ended. Raises OSError."""
        if len(self.running()) >= MAX_RUNNING:
            raise OSError(errno.EAGAIN, f"{MAX_RUNNING} run in the background already; end one first")
        async with AsyncExitStack() as stack:
            enclosed = await stack.enter_async_context(enclosing)
            output, (reading, writing) = Output(MAX_KEPT_BYTES), os.pipe()
            pipe = Pipe(output, None)
            try:
                stack.callback(await listen(pipe, reading))
                process = _start(
                    enclosed.command, folder, enclosed.environ, writing, is_sandboxed=is_sandboxed
                )
            finally:
                os.close(writing)
            started = BackgroundCommand(f"b{next(self._numbers)}", command, owner, process.pid, output)
            self._commands[started.id] = started
            watching = asyncio.create_task(self._watch(started, process, pipe, stack.pop_all()))
            self._watching.add(watching)
            watching.add_done_callback(self._watching.discard)
        return started

    async def end(self, command: BackgroundCommand) -> None:
        """End a command and everything that it started, and wait until it has ended."""
        if command.code is None:
            command.was_ended = True
            await end_group(command)
            await command.over.wait()
            await end_children(command.left)

    async def end_all(self) -> None:
        """End all running commands."""
        for command in self.running():
            await self.end(command)

    def take_news(self, owner: str) -> str:
        """Return lines for the model about its commands that have ended by themselves since the last call."""
        mine = [one for one in self._news if one.owner == owner]
        self._news = [one for one in self._news if one.owner != owner]
        return "\n".join(f"[background command {one} is over: {one.state}]" for one in mine)

    async def _watch(
        self,
        command: BackgroundCommand,
        process: subprocess.Popen[bytes],
        pipe: Pipe,
        stack: AsyncExitStack,
    ) -> None:
        code = await _ended(process)
        await pipe.drained(_LINGER)
        command.seconds = time.monotonic() - command.started
        command.left = CHILDREN.ended(command.pid)
        command.code = code
        self._forget_oldest()
        if not command.was_ended:
            self._news.append(command)
        try:
            await stack.aclose()
        finally:
            command.over.set()
        if not command.was_ended and self.on_end is not None:
            self.on_end(command)

    def _forget_oldest(self) -> None:
        ended = [one for one in self._commands.values() if one.code is not None]
        for one in ended[: len(ended) - _MAX_ENDED]:
            del self._commands[one.id]


BACKGROUND = BackgroundCommands()
"""The background commands of this process; they belong to the process, each to a session in it."""


def unconfined(command: Sequence[str], environ: Mapping[str, str]) -> AbstractAsyncContextManager[Enclosed]:
    """Return the context to run a command in without a sandbox."""
    return nullcontext(Enclosed(command, environ))


def _start(
    command: Sequence[str], folder: Path, environ: Mapping[str, str], writing: int, *, is_sandboxed: bool
) -> subprocess.Popen[bytes]:
    """Start a program with `subprocess`, because asyncio kills its own when the event loop ends."""
    with CHILDREN.starting():
        process = subprocess.Popen(  # noqa: S603 - the user has allowed it
            command,
            cwd=folder,
            env={**environ, **CHILDREN.mark},
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
            **group_options(),
        )
        CHILDREN.began(process.pid, is_sandboxed=is_sandboxed)
    return process


async def _ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process in a daemon thread, which does not keep this process from ending."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def tell(code: int) -> None:
        if not ended.done():
            ended.set_result(code)

    def wait() -> None:
        code = process.wait()
        if not loop.is_closed():
            loop.call_soon_threadsafe(partial(tell, code))

    Thread(target=wait, name="background command", daemon=True).start()
    return await ended
