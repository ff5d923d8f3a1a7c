"""Find, list and end processes that commands left running, including those that called setsid.

On Linux, this process becomes the parent of every orphan among its descendants, and processes started by
commands have a mark in their environment. Elsewhere, processes are found by the group of their command, so
that one that has left its group is not found.
"""

from __future__ import annotations

import asyncio
import ctypes
import functools
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.programs import FOR_USER, STARTED_BY, find_program
from rolling_chat.text import one_line

_PROC = Path("/proc")
_PR_SET_CHILD_SUBREAPER = 36
_GRACE = 2.0  # seconds between asking a process to end and killing it
_USERS = f"{STARTED_BY}={FOR_USER[STARTED_BY]}".encode()
_PAUSE = 0.02  # seconds between two checks of ending processes
_MAX_COMMAND = 60  # characters


@dataclass(frozen=True, slots=True)
class Child:
    """A process that a command started; `started` distinguishes it from a later one with the same number."""

    pid: int
    started: str
    command: str

    @property
    def id(self) -> tuple[int, str]:
        """A value that identifies the process even after its number is reused."""
        return self.pid, self.started

    def __str__(self) -> str:
        return f"{self.pid} ({self.command})"


@dataclass(frozen=True, slots=True)
class _Entry:
    pid: int
    parent: int
    session: int
    state: str
    started: str
    name: str


class Children:
    """A register of the processes that commands of this program have started.

    Each command has a process session of its own.
    """

    def __init__(self) -> None:
        self._token = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._sessions: set[int] = set()  # of all commands so far
        self._running: set[int] = set()  # of the commands that have not ended
        self._sandboxed: set[int] = set()  # of the commands with a process of the sandbox around them
        self._serving: set[int] = set()  # processes that are reaped elsewhere, such as MCP servers
        self._starting = 0
        self._known: set[tuple[int, str]] = set()

    @property
    def mark(self) -> dict[str, str]:
        """The environment variable by which a command's descendants are recognized."""
        return {STARTED_BY: self._token}

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Do not reap children while a process is being started, because asyncio waits for that one."""
        _adopt_orphans()
        self._starting += 1
        try:
            yield
        finally:
            self._starting -= 1

    def serves(self, pid: int) -> None:
        """Record a process with its own session that no command started, such as an MCP server."""
        self._serving.add(pid)

    def served(self, pid: int) -> None:
        """Record the end of such a process."""
        self._serving.discard(pid)

    def began(self, pid: int, *, is_sandboxed: bool = False) -> None:
        """Record the start of a command, which has a process session of its own."""
        self._sessions.add(pid)
        if is_sandboxed:
            self._sandboxed.add(pid)
        self._running.add(pid)

    def ended(self, pid: int) -> tuple[Child, ...]:
        """Record the end of a command; return the processes that it left running."""
        self._running.discard(pid)
        left = self.left_running()
        fresh = tuple(child for child in left if child.id not in self._known)
        self._known = {child.id for child in left}
        return fresh

    def left_running(self) -> tuple[Child, ...]:
        """Find the processes that commands left running when they ended, in the order of their numbers."""
        if sys.platform == "win32" or not self._sessions:
            return ()
        entries = _by_proc() if (_PROC / "self/stat").exists() else _by_ps()
        self._reap(entries)
        alive = {entry.pid: entry for entry in entries if entry.state not in "ZX"}
        ours = self._of_commands(alive)
        busy = _with_descendants(alive, {pid for pid in ours if alive[pid].session in self._running})
        left = (alive[pid] for pid in sorted(ours - busy))
        return tuple(_child(entry) for entry in left if not self._is_sandbox(entry, ours))

    def _is_sandbox(self, entry: _Entry, ours: set[int]) -> bool:
        """Return whether a process is the sandbox's own, which ends with the last one in it.

        It is the parent of the others, because orphans within a sandbox become its children.
        """
        return entry.session in self._sandboxed and entry.parent not in ours

    def has_any(self) -> bool:
        """Return whether a command runs, or a process that one left running."""
        # on Linux check the processes, because the end of one whose event loop was closed was not recorded
        running = self._running if sys.platform != "linux" else set(filter(self.group_runs, self._running))
        return bool(running) or bool(self.left_running())

    def group_runs(self, pid: int) -> bool:
        """Return whether any process of a command's session still runs, even if its leader has ended."""
        entries = _by_proc() if sys.platform == "linux" else []
        session = [entry for entry in entries if entry.session == pid and entry.state not in "ZX"]
        members = {entry.pid for entry in session}
        return any(not self._is_sandbox(entry, members) for entry in session)

    def _of_commands(self, alive: dict[int, _Entry]) -> set[int]:
        """Find the processes that commands started, by session or mark, and all their descendants.

        An orphan without any mark has wiped its environment, because programs started for the user are marked
        too.
        """
        if sys.platform == "win32":
            return set()
        me, own = os.getpid(), os.getsid(0)
        near = _with_descendants(alive, {me}) - {me} if _adopt_orphans() else set(alive)
        near -= _with_descendants(alive, self._serving & alive.keys())
        roots = {pid for pid in near if alive[pid].session in self._sessions}
        for pid in near - roots:
            environment = _read(pid, "environ")
            is_orphan = alive[pid].parent == me and alive[pid].session != own and _adopt_orphans()
            # a process that is just being started has neither arguments nor an environment
            is_wiped = is_orphan and _USERS not in environment and _read(pid, "cmdline") != b""
            if is_wiped or f"{STARTED_BY}={self._token}".encode() in environment:
                roots.add(pid)
        return _with_descendants(alive, roots)

    def _reap(self, entries: Iterable[_Entry]) -> None:
        """Reap adopted orphans that have ended, because nothing else waits for them."""
        if sys.platform == "win32" or self._starting:
            return
        own = os.getsid(0)
        for entry in entries:
            adopted = entry.session != own and entry.pid not in self._sessions | self._serving
            if entry.state == "Z" and entry.parent == os.getpid() and adopted:
                with suppress(ChildProcessError):
                    os.waitpid(entry.pid, os.WNOHANG)


CHILDREN = Children()
"""The children of this process, in all sessions."""


async def end_children(children: Iterable[Child]) -> None:
    """End processes: send SIGTERM, wait, and kill those that are left."""
    left = _signal(children, signal.SIGTERM)
    end = asyncio.get_running_loop().time() + _GRACE
    while left and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(_PAUSE)
        left = _still(left)
    kill_children(left)


def kill_children(children: Iterable[Child]) -> None:
    """Kill processes at once, with SIGKILL."""
    _signal(children, getattr(signal, "SIGKILL", signal.SIGTERM))


def _signal(children: Iterable[Child], number: int) -> tuple[Child, ...]:
    there = _still(children)
    for child in there:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(child.pid, number)
    return there


def _still(children: Iterable[Child]) -> tuple[Child, ...]:
    """Return those that still run and are the same processes."""
    wanted = tuple(children)
    running = {child.id for child in CHILDREN.left_running()} if wanted else set()
    return tuple(child for child in wanted if child.id in running)


def _child(entry: _Entry) -> Child:
    words = _read(entry.pid, "cmdline").rstrip(b"\x00").replace(b"\x00", b" ")
    command = words.decode(errors="replace") or entry.name
    return Child(entry.pid, entry.started, one_line(command, _MAX_COMMAND))


def _with_descendants(alive: Mapping[int, _Entry], roots: set[int]) -> set[int]:
    """Return `roots` and all their descendants."""
    children: dict[int, list[int]] = {}
    for entry in alive.values():
        children.setdefault(entry.parent, []).append(entry.pid)
    found, waiting = set[int](), list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children.get(pid, [])
    return found


def _read(pid: int, what: str) -> bytes:
    with suppress(OSError):
        return (_PROC / str(pid) / what).read_bytes()
    return b""


def _by_proc() -> list[_Entry]:
    entries: list[_Entry] = []
    for place in _PROC.iterdir():
        if not place.name.isdecimal():
            continue
        with suppress(OSError, IndexError):
            text = (place / "stat").read_text(errors="replace")
            # the name, in brackets, may contain anything; the fields after it are plain (man 5 proc)
            head, _, tail = text.rpartition(")")
            fields = tail.split()
            name = head.partition("(")[2]
            state, parent, session, started = fields[0], int(fields[1]), int(fields[3]), fields[19]
            entries.append(_Entry(int(place.name), parent, session, state, started, name))
    return entries


def _by_ps() -> list[_Entry]:
    """List processes with `ps`, for systems without /proc; the process group is used as the session."""
    ps = find_program("ps")
    if ps is None:
        return []
    with suppress(OSError, subprocess.SubprocessError):
        listing = subprocess.run(  # noqa: S603 - all arguments are our own
            [ps, "-axo", "pid=,ppid=,pgid=,state=,lstart=,command="],
            capture_output=True, check=False, timeout=5,
        )  # fmt: skip
        rows = (line.split(None, 9) for line in listing.stdout.decode(errors="replace").splitlines())
        return [
            _Entry(int(row[0]), int(row[1]), int(row[2]), row[3][:1], " ".join(row[4:9]), row[9])
            for row in rows
            if len(row) == 10
        ]
    return []


@functools.cache
def _adopt_orphans() -> bool:
    """Become the parent of orphaned descendants; return whether the system supports that."""
    if sys.platform != "linux":
        return False
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    return False
