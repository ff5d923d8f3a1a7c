"""`python -m rolling_chat`, and the entry point of `rolling-chat`."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

from rolling_chat.gc_tuning import look_seldom


def main() -> None:
    """Run the command line and exit with its code."""
    look_seldom()
    from rolling_chat.cli import run  # noqa: PLC0415  # the interpreter is up before anything of ours loads

    code = run(sys.argv[1:])
    sandbox = sys.modules.get("rolling_chat.tools.sandbox.sandbox")
    if sandbox is not None:  # a command ran
        sandbox.clean_up()
    _end_now(code)


def _end_now(code: int) -> NoReturn:
    """End without the interpreter's own end.

    There a destructor of litellm's imports, and waits forever where a thread that was cut off in the
    middle of an import has the lock; and freeing every object takes time for nothing. All is restored,
    closed and flushed by now but what is written here.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
