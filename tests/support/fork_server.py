"""An interpreter that has imported the program and forks for every start of it; run as a script.

It takes its requests from the socket whose descriptor is its argument: `tests/support/forking.py` sends them.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import socket
import sys
from typing import Any

import rolling_chat.cli.script
import rolling_chat.sessions.sqlite
import rolling_chat.tui.screens.chat_screen
import rolling_chat.tui.start  # noqa: F401

_MOST = 1_000_000  # bytes of a request


def main() -> None:
    """Answer each request with the number of a new process, until nobody asks any more."""
    gc.collect()
    gc.freeze()
    asking = socket.socket(fileno=int(sys.argv[1]))
    while True:
        data, streams, _, _ = socket.recv_fds(asking, _MOST, 3)
        if not data:
            return
        pid = _fork()
        if pid == 0:
            asking.close()
            _run(json.loads(data), streams)
        for stream in streams:
            os.close(stream)
        asking.send(str(pid).encode())


def _fork() -> int:
    """Fork a process that belongs to whoever adopts our orphans; in that process return 0."""
    reading, writing = os.pipe()
    between = os.fork()
    if between == 0:
        os.close(reading)
        pid = os.fork()
        if pid:
            os.write(writing, str(pid).encode())
            os._exit(0)
        os.close(writing)
        return 0
    os.close(writing)
    os.waitpid(between, 0)
    with os.fdopen(reading) as told:
        return int(told.read())


def _run(request: dict[str, Any], streams: list[int]) -> None:
    """Become the program, which ends this process."""
    if request["is_terminal"]:
        os.login_tty(streams[0])
    else:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
    sys.stdin = sys.__stdin__ = _opened(0, "r")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _opened(1, "w")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _opened(2, "w", errors="backslashreplace")  # type: ignore[misc]
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = ["rolling-chat", *request["argv"]]
    exec(request["first"], {"__name__": "__main__"})
    runpy.run_module("rolling_chat", run_name="__main__", alter_sys=True)
    os._exit(0)


def _opened(number: int, mode: str, errors: str = "surrogateescape") -> Any:
    """Return a standard stream as Python opens it where the locale is C.UTF-8."""
    return open(number, mode, encoding="utf-8", errors=errors, closefd=False)


if __name__ == "__main__":
    main()
