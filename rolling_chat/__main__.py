"""`python -m rolling_chat`, and the entry point of `rolling-chat`."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

from rolling_chat.gc_tuning import tune_for_one_run


def main() -> None:
    """Run the command line and exit with its code."""
    tune_for_one_run()
    from rolling_chat.cli import run  # noqa: PLC0415  # after tuning the garbage collector

    code = run(sys.argv[1:])
    sandbox = sys.modules.get("rolling_chat.tools.sandbox.sandbox")
    if sandbox is not None:  # a command ran
        sandbox.clean_up()
    _end_now(code)


def _end_now(code: int) -> NoReturn:
    """End the process without the interpreter's shutdown.

    During shutdown a destructor of litellm runs an import, and waits forever if a thread that was killed
    during an import holds the lock; and freeing every object takes time for nothing. Everything else is
    restored, closed and flushed by now; only the standard streams are flushed here.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
