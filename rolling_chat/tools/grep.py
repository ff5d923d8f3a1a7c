"""Searching files line by line, for machines without ripgrep.

It runs as a process of its own (`python -I grep.py PATTERN PLACE LONGEST`): a pattern that
backtracks without end holds Python's lock, and only a process can be stopped. For the same reason
it imports nothing of the program. It exits as grep does: 0 found, 1 nothing found, 2 failed.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

FOUND, NOTHING, FAILED = 0, 1, 2
COMPLAINT = "pattern: "

# What ripgrep would mostly leave out by .gitignore, which is not read here.
_IGNORED = frozenset(
    {
        ".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox",
        ".mypy_cache", ".pytest_cache", ".ruff_cache", "dist", "build", "target",
    }
)  # fmt: skip
_SNIFF = 8_192
_MAX_FILE = 50_000_000  # bytes; larger files are data, and not searched
_MAX_LINE = 1_000_000  # bytes of a line that are searched


def search(pattern: str, place: str, longest: int) -> Iterator[str]:
    """`file:line:text` for every match below `place`, files in order; links are not followed."""
    expression = re.compile(pattern)
    for path in _files(Path(place)):
        try:
            yield from _matches(expression, path, longest)
        except OSError:
            continue  # unreadable, or gone meanwhile


def _files(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    for folder, folders, files in os.walk(place):
        folders[:] = sorted(name for name in folders if name not in _IGNORED)
        for name in sorted(files):
            yield Path(folder, name)


def _matches(expression: re.Pattern[str], path: Path, longest: int) -> Iterator[str]:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE:
            return
        if b"\x00" in file.peek(_SNIFF)[:_SNIFF]:
            return
        for number, line in enumerate(file, start=1):
            text = line[:_MAX_LINE].decode("utf-8", errors="replace").rstrip("\r\n")
            if expression.search(text):
                shown = text if len(text) <= longest else f"{text[:longest]} [… line cut]"
                yield f"{path}:{number}:{shown}"


def main(arguments: list[str]) -> int:
    """Print the matches; the exit code is grep's."""
    pattern, place, longest = arguments
    out = sys.stdout.buffer
    code = NOTHING
    try:
        for line in search(pattern, place, int(longest)):
            code = FOUND
            out.write(line.encode("utf-8", errors="surrogateescape") + b"\n")
    except (re.error, RecursionError, OverflowError) as error:
        out.write(f"{COMPLAINT}{error}\n".encode())
        code = FAILED
    out.flush()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
