"""The identity of processes: a process number alone may have been reused."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.programs import find_program

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """The identity of a process; `started` distinguishes it from a later one with the same number.

    `machine` is the scope of that number: one boot of one system, and within it one container. `host` is the
    machine's name for people.
    """

    pid: int
    host: str
    machine: str
    started: str

    def is_gone(self) -> bool:
        """Return whether the process is known to have ended; False if that cannot be known."""
        here = _machine()
        if self.machine == here:
            started = _started(self.pid)
            return started is not None and started != self.started
        # the same computer, rebooted since
        return self.host == platform.node() and self.machine.split()[:1] != here.split()[:1]

    def can_be_asked(self) -> bool:
        """Return whether `is_gone` has an answer, which it has for processes of this machine."""
        return self.machine == _machine()


def this_process() -> Process:
    """Return the identity of the current process."""
    pid = os.getpid()
    return Process(pid, platform.node(), _machine(), _started_once(pid))


def may_run(pid: int) -> bool:
    """Return whether a process of this machine runs; True if that cannot be known."""
    return _started(pid) != ""


@functools.cache
def machine_mark() -> str:
    """Return eight hexadecimal digits that identify this machine since its last boot."""
    return hashlib.sha256(_machine().encode()).hexdigest()[:8]


@functools.cache
def _started_once(pid: int) -> str:
    return _started(pid) or ""


@functools.cache
def _machine() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return platform.node()


def _started(pid: int) -> str | None:
    """Return when `pid` started, in the system's own format; "" if it does not run, None if unknown."""
    if (_PROC / "self/stat").exists():
        return _started_by_proc(pid)
    program = find_program("ps")
    if program is None:
        return None
    try:
        asked = subprocess.run(  # noqa: S603 - its only variable part is a number
            [program, "-o", "lstart=", "-p", str(pid)],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip()


def _started_by_proc(pid: int) -> str:
    try:
        # the name, in parentheses, may contain anything; the fields after it are plain (man 5 proc)
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    state, start_ticks = fields[0], fields[19]
    return "" if state in "ZX" else start_ticks
