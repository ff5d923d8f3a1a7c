"""search_files: lines that match a pattern, in the files of the working folder."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from rolling_chat.messages import Json, JsonObject
from rolling_chat.programs import find_program
from rolling_chat.tools import grep
from rolling_chat.tools.arguments import read_text
from rolling_chat.tools.base import ToolContext, ToolError, ToolResult, function_schema
from rolling_chat.tools.confine import relative_name, resolve_inside
from rolling_chat.tools.process import Ended, run_process
from rolling_chat.tools.text import decode

_TIMEOUT = 60  # seconds
_LIMIT = 1_000_000  # bytes of matches; a search that finds more wants a narrower pattern
_LONGEST_LINE = 500  # columns of a line that are shown

_DESCRIPTION = (
    "Search the text files in the working folder for a regular expression. "
    "Gives file:line:text for every line that matches. Files that git ignores are left out."
)


@dataclass(frozen=True, slots=True)
class SearchFiles:
    """The tool `search_files(pattern, path)`: ripgrep where it is installed, else `grep.py`."""

    name: str = "search_files"
    needs_permission: bool = False

    @property
    def schema(self) -> dict[str, Json]:
        """The tool as it is offered to the model."""
        return function_schema(
            self.name,
            _DESCRIPTION,
            {
                "pattern": {"type": "string", "description": "A regular expression."},
                "path": {"type": "string", "description": "File or folder to search; '.' if left out."},
            },
            required=("pattern",),
        )

    def describe(self, arguments: JsonObject) -> str:
        """The pattern, and where it is looked for."""
        return f"search_files {arguments.get('pattern')} in {arguments.get('path') or '.'}"

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """`file:line:text`, one line a match, sorted by file. A bad pattern is a ToolError."""
        pattern = read_text(arguments, "pattern")
        if "\x00" in pattern or "\n" in pattern:
            raise ToolError("The argument 'pattern' must be one line: matches are looked for line by line.")
        target = resolve_inside(read_text(arguments, "path", default="."), context)
        place = str(target.relative_to(context.folder.resolve()))
        try:
            ended = await run_process(
                _command(pattern, place, context),
                folder=context.folder,
                environ=context.environ,
                timeout=_TIMEOUT,
                limit=_LIMIT,
            )
        except (OSError, ValueError) as error:
            raise ToolError(f"The search could not be started: {error}.") from None
        return ToolResult(_present(ended, pattern, relative_name(target, context)))


def _command(pattern: str, place: str, context: ToolContext) -> list[str]:
    ripgrep = find_program("rg", context.environ, context.folder)
    if ripgrep is None:
        # -I: neither the working folder nor the environment can change what is imported
        return [sys.executable, "-I", grep.__file__, pattern, place, str(_LONGEST_LINE)]
    return [
        ripgrep,
        "--no-config",
        "--no-messages",
        "--color=never",
        "--no-heading",
        "--with-filename",
        "--line-number",
        "--hidden",
        "--glob=!.git",
        "--sort=path",
        f"--max-columns={_LONGEST_LINE}",
        "--max-columns-preview",
        f"--regexp={pattern}",
        "--",
        place,
    ]


def _present(ended: Ended, pattern: str, place: str) -> str:
    head, tail = ended.output.parts
    text = decode(head if ended.output.left_out else head + tail)
    lines = [line.removeprefix("./") for line in text.splitlines()]
    if ended.code == grep.FAILED and _is_complaint(text):
        raise ToolError(f"The pattern {pattern!r} is no regular expression: {_complaint(lines)}.")
    if ended.output.left_out:
        lines[-1] = f"[cut at {len(lines) - 1:,} matches: search for something narrower]"
    if ended.timed_out:
        lines.append(f"[stopped after {_TIMEOUT} seconds: search in a narrower path]")
    return "\n".join(lines) or f"[no match for {pattern!r} in {place}]"


def _is_complaint(text: str) -> bool:
    return text.startswith(("rg: ", "regex parse error", "error: ", grep.COMPLAINT))


def _complaint(lines: list[str]) -> str:
    """The line that says what is wrong: ripgrep shows the pattern first, and the reason last."""
    last = next((line for line in reversed(lines) if line.strip()), "it cannot be read")
    return last.removeprefix("error: ").removeprefix(grep.COMPLAINT).strip().rstrip(".")
