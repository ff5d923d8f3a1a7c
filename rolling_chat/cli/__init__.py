"""The command line: chat, `-p`, sessions, doctor. Every failure is one line and an exit code.

The options are parsed before anything else is imported, and each command imports its modules when it runs,
so that no command waits for another's imports, and `--help` for none.
"""

from __future__ import annotations

from collections.abc import Sequence

from rolling_chat.cli.exits import Failure, complain
from rolling_chat.cli.parser import read_options

__all__ = ["run"]


def run(argv: Sequence[str]) -> int:
    """Run one command line; return its exit code. Never raises."""
    try:
        options = read_options(argv)
    except Failure as failure:
        return complain(failure)
    from rolling_chat.cli.running import run_command

    return run_command(options)
