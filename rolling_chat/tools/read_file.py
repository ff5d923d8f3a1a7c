"""read_file: reads a text file of the working folder, whole or by lines."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import BinaryIO

from rolling_chat.messages import FileTouch, Json, JsonObject
from rolling_chat.tools.base import ToolContext, ToolError, ToolResult, function_schema, read_count, read_text
from rolling_chat.tools.confine import open_inside, relative_name, resolve_file, resolve_parent
from rolling_chat.tools.decoding import MAX_RESULT_BYTES, binary_kind, decode, encoding_of
from rolling_chat.tools.hashing import FileHash

_PIECE = 65_536  # bytes read at a time; a line may be longer than memory
_MAX_LINE = 2_000  # characters shown of a line among others
_SNIFF = 8_192  # git looks for NUL in the first 8,000 bytes to tell binary from text

_DESCRIPTION = "Read a text file, whole or from line `start` to line `end`, counted from 1."


READ_FILE = "read_file"


@dataclass(frozen=True, slots=True)
class ReadFile:
    """The tool `read_file(path, start, end)`."""

    name: str = READ_FILE
    needs_permission: bool = False
    only_reads: bool = True

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        return function_schema(
            self.name,
            _DESCRIPTION,
            {
                "path": {"type": "string"},
                "start": {"type": "integer"},
                "end": {"type": "integer"},
            },
            required=("path",),
        )

    def describe(self, arguments: JsonObject) -> str:
        """Return the path, and the lines if the call names them."""
        path, start, end = (arguments.get(key) for key in ("path", "start", "end"))
        if start is None and end is None:
            return f"read_file {path}"
        return f"read_file {path} lines {start or 1}-{end or 'end'}"

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Return the requested lines, after a line that describes them if they are not the whole file."""
        path = read_text(arguments, "path")
        start = read_count(arguments, "start", default=1) or 1
        end = read_count(arguments, "end")
        if end is not None and end < start:
            raise ToolError(f"The argument 'end' ({end}) must not be below 'start' ({start}).")
        return await asyncio.to_thread(_read, path, start, end, context)


@dataclass(slots=True)
class Selection:
    """Lines of a file, from `first` to `last`."""

    data: bytearray
    first: int  # from 1
    last: int
    lines: int  # of the whole file, as far as it was read
    full: bool = False  # whether MAX_RESULT_BYTES was reached

    @property
    def is_whole(self) -> bool:
        """Whether it has all lines of the file."""
        return self.first == 1 and self.last == self.lines and not self.full

    @property
    def text(self) -> str:
        """The lines as text."""
        return decode(bytes(self.data)).removeprefix("\ufeff")


def _read(path: str, start: int, end: int | None, context: ToolContext) -> ToolResult:
    unsaved = _unsaved(path, context)
    resolved, file = unsaved or _opened(path, context)
    with file:
        selection, touched = select_lines(file, resolved, start, end, context)
    name = relative_name(resolved, context)
    text, is_cut = _present(selection, name, start)
    if is_cut:
        touched = replace(touched, action="read in part")
    if unsaved:
        text = f"[{name} as the user has it in an editor, with changes that are not saved]\n{text}"
    return ToolResult(text, files=(touched,))


def _opened(path: str, context: ToolContext) -> tuple[Path, BinaryIO]:
    resolved = resolve_file(path, context)
    return resolved, open_inside(resolved, context)


def _unsaved(path: str, context: ToolContext) -> tuple[Path, BinaryIO] | None:
    """Return a file's text from an editor with unsaved changes, if any; it need not be on disk yet."""
    if not context.unsaved:
        return None
    resolved = resolve_parent(path, context).resolve()
    text = context.unsaved.get(resolved)
    return None if text is None else (resolved, BufferedReader(BytesIO(text.encode("utf-8", "replace"))))


def select_lines(
    file: BinaryIO, path: Path, start: int, end: int | None, context: ToolContext
) -> tuple[Selection, FileTouch]:
    """Read the lines from `start` to `end` of an open file. Raises ToolError for a binary file."""
    name = relative_name(path, context)
    with file:
        head = file.peek(_SNIFF)[:_SNIFF] if hasattr(file, "peek") else b""
        encoding, digest = encoding_of(head), FileHash()
        if encoding in {"utf-16", "utf-32"}:
            pieces: Iterator[bytes] = iter(_recode(file, encoding, digest))
        elif kind := binary_kind(head):
            size = os.fstat(file.fileno()).st_size
            raise ToolError(f"{name} is {kind} of {size:,} bytes, a binary file: its text cannot be shown.")
        else:
            pieces = _pieces(file, digest)
        selection = _select(pieces, start, end)
        rest = file.peek(1) if hasattr(file, "peek") else b""
        is_whole = selection.is_whole and not rest
        touched = FileTouch(str(path), "read" if is_whole else "read in part", digest.finish(file))
    return selection, touched


def _pieces(file: BinaryIO, digest: FileHash) -> Iterator[bytes]:
    while piece := file.readline(_PIECE):
        digest.add(piece)
        yield piece


def _recode(file: BinaryIO, encoding: str, digest: FileHash) -> list[bytes]:
    data = file.read(2 * MAX_RESULT_BYTES)
    digest.add(data)
    lines = data.decode(encoding, errors="replace").encode("utf-8", errors="replace").split(b"\n")
    return [*(line + b"\n" for line in lines[:-1]), *filter(None, lines[-1:])]


def _select(pieces: Iterator[bytes], start: int, end: int | None) -> Selection:
    selection = Selection(bytearray(), start, start - 1, 0)
    line, at_start = 0, True
    for piece in pieces:
        line += at_start
        at_start = piece.endswith(b"\n")
        selection.lines = line
        if line < start or (end is not None and line > end):
            continue
        selection.data += piece[: MAX_RESULT_BYTES - len(selection.data)]
        selection.last = line
        if len(selection.data) >= MAX_RESULT_BYTES:
            selection.full = True
            break
    return selection


def _present(selection: Selection, name: str, start: int) -> tuple[str, bool]:
    """Return the lines, after a line that describes them, and whether a line was cut."""
    if not selection.lines:
        return f"[{name} is empty]", False
    if selection.last < start:
        raise ToolError(f"{name} has {selection.lines} lines; line {start} is beyond its end.")
    text = selection.text
    is_alone = selection.first == selection.last
    shown = text if is_alone else _without_long_lines(text, start)
    if selection.full:
        limit = MAX_RESULT_BYTES // 1_000_000
        head = (
            f"[lines {start}-{selection.last} of {name}, cut at {limit} MB; "
            "the file goes on: read it with start and end]\n"
        )
    elif start > 1 or selection.last < selection.lines:
        head = f"[lines {start}-{selection.last} of {selection.lines} of {name}]\n"
    else:
        head = ""
    return head + shown, shown != text


def _without_long_lines(text: str, start: int) -> str:
    """Cut lines that are so long that they would hide the others."""
    if len(text) <= _MAX_LINE:
        return text
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if len(line) > _MAX_LINE:
            number = start + index
            lines[index] = (
                f"{line[:_MAX_LINE]} [… cut: this line has {len(line):,} characters; "
                f"start={number}, end={number} shows it alone]"
            )
    return "\n".join(lines)
