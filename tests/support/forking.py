"""Starting the program without waiting for its imports, which are a second of processor time.

Each start is a process of its own, with its own environment, folder and streams, that is forked from an
interpreter which has imported the program. A test of the start itself runs `python -m rolling_chat`.
"""

from __future__ import annotations

import atexit
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from rolling_chat.tools.leftover_processes import _adopt_orphans
from tests.support.processes import wait_until_ended

_SERVER = Path(__file__).with_name("fork_server.py")
_PIPE_BYTES = 1_000_000  # what a pipe is made to hold, so that nobody waits for its reader


def fork_in_terminal(
    argv: Sequence[str], environ: Mapping[str, str], folder: Path | str, terminal: int, first: str = ""
) -> int:
    """Start the program in a terminal, given as descriptor; return its process number.

    The process is a child of this one. `first` is Python that it runs before the program.
    """
    return _server().start(argv, environ, folder, [terminal], first, is_terminal=True)


def run_forked(
    argv: Sequence[str], environ: Mapping[str, str], folder: Path, stdin: bytes | None = None
) -> tuple[int, str, str]:
    """Run one command line of the program; return its exit code, output and errors.

    `stdin` comes through a pipe; None is the null device.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given = os.open(os.devnull, os.O_RDONLY) if stdin is None else _pipe_with(stdin)
        try:
            pid = _server().start(argv, environ, folder, [given, out.fileno(), err.fileno()])
        finally:
            os.close(given)
        code = _code_of(pid)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
        return code, texts[0], texts[1]


class _ForkServer:
    """A running `fork_server.py`, which ends with this process."""

    def __init__(self) -> None:
        # the forks are orphans of processes in between: so they become children of this one
        assert _adopt_orphans(), "orphans can be adopted on Linux only"
        self._asking, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(_SERVER), str(theirs.fileno())],
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        atexit.register(self._end)

    def start(
        self,
        argv: Sequence[str],
        environ: Mapping[str, str],
        folder: Path | str,
        streams: Sequence[int],
        first: str = "",
        *,
        is_terminal: bool = False,
    ) -> int:
        request = {
            "argv": list(argv),
            "environ": dict(environ),
            "folder": str(folder),
            "first": first,
            "is_terminal": is_terminal,
        }
        socket.send_fds(self._asking, [json.dumps(request).encode()], streams)
        return int(self._asking.recv(100))

    def _end(self) -> None:
        self._asking.close()
        self._process.wait()


@cache
def _server() -> _ForkServer:
    return _ForkServer()


def _pipe_with(data: bytes) -> int:
    """Return the reading end of a pipe with this in it, which nobody writes to any more."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as pipe:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        pipe.write(data)
    return reading


def _code_of(pid: int) -> int:
    """Wait for a process; one that does not end is killed, and fails the test."""
    try:
        wait_until_ended(pid)
    finally:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)
