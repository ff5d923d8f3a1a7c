"""Piped input, for `-p`."""

from __future__ import annotations

import os
import select
import stat
import sys
from typing import TextIO

# A pipe that was left open without any output must not block a script that passed a text.
_FIRST_BYTE_SECONDS = 3.0


def read_pipe(*, wait: bool) -> str:
    """Read the text on stdin; return an empty string if stdin is a terminal, closed or empty.

    Without `wait`, a pipe that is silent for 3 seconds is ignored, with a line on stderr that says so. Bytes
    that are not UTF-8 become U+FFFD.
    """
    stream = sys.stdin
    if stream is None or stream.closed or stream.isatty():
        return ""
    if not wait and not _speaks(stream):
        print("rolling-chat: no input came through the pipe; continuing without it", file=sys.stderr)
        return ""
    return stream.buffer.read().decode("utf-8", "replace")


def _speaks(stream: TextIO) -> bool:
    try:
        mode = os.fstat(stream.fileno()).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            return True
        ready, _, _ = select.select([stream], [], [], _FIRST_BYTE_SECONDS)
    except (OSError, ValueError):
        return True
    return bool(ready)
