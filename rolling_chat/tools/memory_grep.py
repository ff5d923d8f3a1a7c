"""Match lines in memory against an untrusted pattern."""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rolling_chat.search_terms import fold
from rolling_chat.tools import search_process
from rolling_chat.tools.base import ToolError
from rolling_chat.tools.process import run_process

_TIMEOUT = 5.0  # seconds, after which a pattern that backtracks endlessly is stopped
_LONGEST_PATTERN = 1_000  # characters
_FILE = "piece"
_PLAIN = re.compile(r"[^\\.^$*+?{}\[\]|()]*")


async def matching_lines(lines: Sequence[str], pattern: str) -> tuple[list[int], str]:
    """Return the numbers, from 1, of the matching lines, and a note if the pattern was used as plain text.

    Case is ignored. Regular expressions are matched in a process of their own, because Python's `re` can only
    be stopped with its process. Raises ToolError for a pattern that takes too long.
    """
    if "\n" in pattern or "\x00" in pattern or len(pattern) > _LONGEST_PATTERN:
        raise ToolError(
            f"The pattern must be one line of at most {_LONGEST_PATTERN:,} characters: "
            "lines are matched one by one."
        )
    if _PLAIN.fullmatch(pattern):
        return _literal(lines, pattern), ""
    try:
        re.compile(_scoped(pattern))
    except (re.error, RecursionError, OverflowError):
        return _literal(lines, pattern), "; taken as plain text, for it is no regular expression"
    return await _by_process(lines, pattern), ""


def _literal(lines: Sequence[str], pattern: str) -> list[int]:
    wanted = fold(pattern)
    return [number for number, line in enumerate(lines, start=1) if wanted in fold(line)]


async def _by_process(lines: Sequence[str], pattern: str) -> list[int]:
    try:
        with tempfile.TemporaryDirectory(prefix="rolling-chat-") as folder:
            await asyncio.to_thread(_write, lines, Path(folder, _FILE))
            ended = await run_process(
                [sys.executable, "-I", search_process.__file__, _scoped(pattern), "1", "", "", _FILE],
                folder=Path(folder),
                environ={},
                timeout=_TIMEOUT,
            )
    except OSError as error:
        raise ToolError(f"The search could not be started: {error.strerror or error}.") from None
    head, tail = ended.output.parts
    if not ended.timed_out and (fault := search_process.fault_of(ended.code, head + tail)):
        raise ToolError(f"The search broke: {fault}. Search for words instead.")
    if ended.timed_out or ended.code == search_process.FAILED:
        raise ToolError(
            f"The pattern took over {_TIMEOUT:.0f} seconds and was stopped: use a plainer one, or words."
        )
    matches = (line for line in (head + tail).splitlines() if line.startswith(b"\0"))
    return [int(line[1:].partition(b":")[0]) for line in matches]


def _write(lines: Sequence[str], path: Path) -> None:
    text = "\n".join(lines).replace("\x00", "\ufffd")
    path.write_text(text, encoding="utf-8", errors="replace", newline="")


def _scoped(pattern: str) -> str:
    return f"(?i:{pattern})"
