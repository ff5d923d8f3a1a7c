"""Exit codes, and the failures that carry them."""

from __future__ import annotations

import sys
from enum import IntEnum


class Exit(IntEnum):
    """The program's exit codes."""

    DONE = 0
    FAILED = 1
    USAGE = 2  # bad usage or settings
    TOO_LONG = 3  # refused: the prompt does not fit
    INTERRUPTED = 130


class Failure(Exception):  # noqa: N818 - it is a way out, not a bug
    """A command-line error; `str()` is the one line for the user."""

    def __init__(self, line: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(line)
        self.code = code


def complain(failure: Failure) -> int:
    """Print the line of a failure on stderr; return its exit code."""
    print(f"rolling-chat: {failure}", file=sys.stderr)
    return failure.code
