"""Exit codes, and the failures that carry them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the program's exit code tells a script."""

    DONE = 0
    FAILED = 1
    USAGE = 2  # bad usage or settings
    TOO_LONG = 3  # refused: the prompt does not fit
    INTERRUPTED = 130


class Failure(Exception):  # noqa: N818 - what is raised is the way out, not an error of ours
    """The command cannot go on; `str()` is the one line for the user."""

    def __init__(self, line: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(line)
        self.code = code
