"""Write the completions of the command line, one file a shell, into the package.

    .venv/bin/python .ci/make_completions.py

shtab makes them from the parser. A test fails when they are not up to date.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import shtab

from rolling_chat.cli.parser import make_parser
from rolling_chat.cli.subcommands import SHELLS

FOLDER = Path(__file__).resolve().parents[1] / "rolling_chat" / "cli" / "completions"


def completions() -> dict[str, str]:
    """Return the text of each completion by the name of its file."""
    parser = make_parser()
    _complete_files(parser)
    return {f"rolling-chat.{shell}": shtab.complete(parser, shell=shell) for shell in SHELLS}


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Have file names completed wherever the help says FILE."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to ask
        if action.metavar == "FILE":
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        for command in action.choices.values() if isinstance(action.choices, dict) else ():
            _complete_files(command)


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in completions().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
