"""search_files: finds the lines that match a pattern in the files of the working folder."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rolling_chat.messages import Json, JsonObject
from rolling_chat.programs import find_program
from rolling_chat.text import one_line
from rolling_chat.tools import search_process
from rolling_chat.tools.base import ToolContext, ToolError, ToolResult, function_schema, read_text
from rolling_chat.tools.confine import relative_name, resolve_inside, working_folder
from rolling_chat.tools.decoding import decode, show_name
from rolling_chat.tools.process import Ended, run_process

_TIMEOUT = 60  # seconds
_LIMIT = 1_000_000  # bytes of matches; a search that finds more wants a narrower pattern
_LONGEST_LINE = 500  # columns of a line that are shown
_MATCH = re.compile(rb"([^\x00]*)\x00(\d+):([^\n]*)\n")

_DESCRIPTION = (
    "Find lines by a Python regular expression in a file or folder; files that git ignores are left out."
)


@dataclass(frozen=True, slots=True)
class SearchFiles:
    """The tool `search_files(pattern, path)`; with ripgrep installed it is faster, with the same results."""

    name: str = "search_files"
    needs_permission: bool = False
    only_reads: bool = True

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        return function_schema(
            self.name,
            _DESCRIPTION,
            {
                "pattern": {"type": "string"},
                "path": {"type": "string"},
            },
            required=("pattern",),
        )

    def describe(self, arguments: JsonObject) -> str:
        """Return the pattern, and the path to search."""
        return f"search_files {arguments.get('pattern')} in {arguments.get('path') or '.'}"

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Return the matches as `file:line:text`, one per line, sorted by file. Raises ToolError."""
        pattern = read_text(arguments, "pattern")
        if "\x00" in pattern or "\n" in pattern:
            raise ToolError("The argument 'pattern' must be one line: matches are looked for line by line.")
        target = resolve_inside(read_text(arguments, "path", default="."), context)
        parts = target.relative_to(context.folder.resolve()).parts
        try:
            with working_folder(context) as opened:
                ended = await run_process(
                    _command(pattern, opened, parts, context),
                    folder=context.folder,
                    environ=context.environ,
                    timeout=_TIMEOUT,
                    limit=_LIMIT,
                    pass_fds=opened,
                )
        except (OSError, ValueError) as error:
            raise ToolError(f"The search could not be started: {error}.") from None
        return ToolResult(_present(ended, pattern, target, context))


def _command(pattern: str, opened: Sequence[int], parts: Sequence[str], context: ToolContext) -> list[str]:
    ripgrep = find_program("rg", context.environ, context.folder) or ""
    folder = str(opened[0]) if opened else ""
    # -I: neither the working folder nor the environment can change what is imported
    return [
        sys.executable,
        "-I",
        search_process.__file__,
        pattern,
        str(_LONGEST_LINE),
        ripgrep,
        folder,
        *parts,
    ]


def _present(ended: Ended, pattern: str, target: Path, context: ToolContext) -> str:
    head, tail = ended.output.parts
    data = head if ended.output.left_out else head + tail
    if ended.code == search_process.FAILED and not ended.timed_out:
        said = decode(data).strip().removeprefix(search_process.COMPLAINT).rstrip(".")
        raise ToolError(
            f"The pattern {one_line(pattern, 200)!r} is no regular expression of Python's: {said}."
        )
    if not ended.timed_out and (fault := search_process.fault_of(ended.code, head + tail)):
        raise ToolError(f"The search broke: {fault}. Search in a narrower path, or with another pattern.")
    folder = context.folder.resolve()
    lines = [_line(match, target, folder) for match in _MATCH.finditer(data)]
    if ended.output.left_out:
        lines.append(f"[cut at {len(lines):,} matches: search for something narrower]")
    if ended.timed_out:
        lines.append(f"[stopped after {_TIMEOUT} seconds: search in a narrower path]")
    return "\n".join(lines) or f"[no match for {pattern!r} in {relative_name(target, context)}]"


def _line(match: re.Match[bytes], target: Path, folder: Path) -> str:
    """Return a match as one line, whatever characters its file name has."""
    name, number, text = match.groups()
    path = target / os.fsdecode(name) if name else target
    return f"{show_name(path.relative_to(folder))}:{number.decode()}:{decode(text)}"
