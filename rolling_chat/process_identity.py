"""Which process is which: a process number alone may long belong to another."""

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
    """The identity of a process; `started` tells it from a later one with the same number.

    `machine` is where that number counts: one run of one system, and in a container the
    container. `host` is the name that people know the machine by.
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
        # the same computer, started anew since
        return self.host == platform.node() and self.machine.split()[:1] != here.split()[:1]

    def can_be_asked(self) -> bool:
        """Return whether `is_gone` can tell, that is, for processes of this machine."""
        return self.machine == _machine()


def this_process() -> Process:
    """Return the identity of the current process."""
    pid = os.getpid()
    return Process(pid, platform.node(), _machine(), _started_once(pid))


def may_run(pid: int) -> bool:
    """Return whether a process of this machine runs, as far as can be known."""
    return _started(pid) != ""


@functools.cache
def machine_mark() -> str:
    """Return eight hexadecimal digits that stand for this machine since its last start."""
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
    """Return when `pid` started, in the system's own words; "" if it does not run, None if nobody says."""
    if (_PROC / "self/stat").exists():
        return _started_by_proc(pid)
    program = find_program("ps")
    if program is None:
        return None
    try:
        asked = subprocess.run(  # noqa: S603 - a number is all that is ours in it
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
        # the name, in brackets, may hold anything; what follows it is plain (man 5 proc)
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    state, start_ticks = fields[0], fields[19]
    return "" if state in "ZX" else start_ticks
