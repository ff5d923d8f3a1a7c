"""`python -m rolling_chat`, and the entry point of `rolling-chat`."""

from __future__ import annotations

import sys

from rolling_chat.garbage import look_seldom


def main() -> None:
    """Run the command line and exit with its code."""
    look_seldom()
    from rolling_chat.cli import run  # noqa: PLC0415  # the interpreter is up before anything of ours loads

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
