"""outline: lists the signatures of a source file or of a folder's files, with their lines."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath

from rolling_chat.messages import Json, JsonObject
from rolling_chat.text import one_line
from rolling_chat.tools.base import ToolContext, ToolError, ToolResult, function_schema, read_text
from rolling_chat.tools.confine import open_folder, open_inside, relative_name, resolve_inside
from rolling_chat.tools.decoding import binary_kind, decode, encoding_of, show_name
from rolling_chat.tools.process import run_process
from rolling_chat.tools.search_process import Rules, Tree, read_rules

_PROCESS = str(Path(__file__).with_name("outline_process.py"))
_TIMEOUT = 20.0  # seconds
_MAX_BYTES = 1_000_000  # of a file; longer ones are generated or data
_MAX_FILES = 200  # of a folder
_MAX_TOTAL = 4_000_000  # bytes of all files of a folder
_MAX_LINES = 1_500  # of a result

SUFFIXES = frozenset([
    "bash", "c", "cc", "cfg", "cjs", "cpp", "cs", "cxx", "dart", "ex", "exs", "go", "h", "hpp", "ini", "java",
    "js", "jsx", "kt", "lua", "md", "mjs", "php", "py", "rb", "rs", "scala", "sh", "sql", "swift", "toml",
    "ts", "tsx",
])  # fmt: skip
"""The files that the process can read, by their suffixes."""


@dataclass(frozen=True, slots=True)
class _Source:
    name: str
    suffix: str
    text: str


@dataclass(frozen=True, slots=True)
class _Sources:
    """The texts that were read, and a line about what was left out, if anything."""

    files: Sequence[_Source]
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Outline:
    """The tool `outline(path)`."""

    name: str = "outline"
    needs_permission: bool = False
    only_reads: bool = True

    @property
    def schema(self) -> dict[str, Json]:
        """The tool's schema as offered to the model."""
        return function_schema(
            self.name,
            "List classes and functions of a source file or folder with their lines.",
            {"path": {"type": "string"}},
            required=("path",),
        )

    def describe(self, arguments: JsonObject) -> str:
        """Return the file or folder to outline."""
        return f"outline {arguments.get('path') or '.'}"

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Return the signatures, file by file. Raises ToolError."""
        path = read_text(arguments, "path", default=".")
        sources = await asyncio.to_thread(_read, path, context)
        with tempfile.TemporaryDirectory(prefix="rolling-chat-") as folder:
            file = Path(folder, "sources")
            given = json.dumps([(source.suffix, source.text) for source in sources.files])
            await asyncio.to_thread(file.write_text, given, "utf-8", "replace")
            try:
                ended = await run_process(
                    [sys.executable, "-I", "-W", "ignore", _PROCESS, str(file)],
                    folder=Path(folder),
                    environ={
                        name: context.environ[name] for name in ("SYSTEMROOT",) if name in context.environ
                    },
                    timeout=_TIMEOUT,
                )
            except OSError as error:
                raise ToolError(f"The outline could not be made: {error.strerror or error}.") from None
        if ended.timed_out or ended.code or ended.output.left_out:
            raise ToolError(f"{show_name(path)} is too tangled for an outline: read it with start and end.")
        return ToolResult(_present(sources, json.loads(b"".join(ended.output.parts))))


def _read(path: str, context: ToolContext) -> _Sources:
    resolved = resolve_inside(path, context)
    if resolved.is_dir():
        return _read_folder(resolved, context)
    name = relative_name(resolved, context)
    suffix = _suffix(resolved.name)
    if suffix not in SUFFIXES:
        raise ToolError(f"{name} is of no language that outline knows; read_file reads it.")
    with open_inside(resolved, context) as file:
        size = os.fstat(file.fileno()).st_size
        if size > _MAX_BYTES:
            raise ToolError(f"{name} has {size:,} bytes; outline takes at most {_MAX_BYTES:,}.")
        data = file.read(_MAX_BYTES)
    if kind := binary_kind(data[:8_192]):
        raise ToolError(f"{name} is {kind}, not a source file.")
    return _Sources([_Source(name, suffix, _text(data))])


def _read_folder(folder: Path, context: ToolContext) -> _Sources:
    files: list[_Source] = []
    total = skipped = 0
    parts = folder.relative_to(context.folder.resolve()).parts
    for name, descriptor in _files(parts, context):
        with os.fdopen(descriptor, "rb") as file:
            if _suffix(name) not in SUFFIXES:
                continue
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                continue
            is_taken = len(files) < _MAX_FILES and total + status.st_size <= _MAX_TOTAL
            if status.st_size > _MAX_BYTES or not is_taken:
                skipped += 1
                continue
            data = file.read(_MAX_BYTES)
        if not binary_kind(data[:8_192]):
            total += len(data)
            files.append(_Source(show_name("/".join((*parts, name))), _suffix(name), _text(data)))
    if not files:
        raise ToolError(f"There is no source file in {relative_name(folder, context)} that outline knows.")
    left_out = f"[{skipped:,} more files left out: outline a folder below]" if skipped else ""
    return _Sources(files, left_out)


def _files(parts: Sequence[str], context: ToolContext) -> Iterator[tuple[str, int]]:
    """Yield the files of a folder that git would not ignore, each with a descriptor."""
    root = context.folder.resolve()
    rules: Rules = ()
    try:
        for at in range(len(parts)):
            with _opened(root.joinpath(*parts[:at]), context) as above:
                rules += read_rules(above, "".join(f"{part}/" for part in parts[:at]))
        with _opened(root.joinpath(*parts), context) as where:
            yield from Tree(where, "".join(f"{part}/" for part in parts), rules).files()
    except OSError as error:
        raise ToolError(f"The folder cannot be read: {(error.strerror or str(error)).lower()}.") from None


@contextmanager
def _opened(folder: Path, context: ToolContext) -> Iterator[int | str]:
    where = open_folder(folder, context)
    try:
        yield where
    finally:
        if isinstance(where, int):
            os.close(where)


def _suffix(name: str) -> str:
    return PurePath(name).suffix.lower().removeprefix(".")


def _text(data: bytes) -> str:
    return decode(data, encoding_of(data[:4])).removeprefix("\ufeff").replace("\r\n", "\n")


def _present(sources: _Sources, outlines: Sequence[Sequence[tuple[int, int, str]]]) -> str:
    lines: list[str] = []
    for source, entries in zip(sources.files, outlines, strict=True):
        if entries or len(sources.files) == 1:
            lines.append(source.name)
        lines += [f"{number:>5}  {'  ' * min(depth, 8)}{one_line(text)}" for number, depth, text in entries]
        if not entries and len(sources.files) == 1:
            lines.append("[no class or function found]")
    if len(lines) > _MAX_LINES:
        more = f"[{len(lines) - _MAX_LINES:,} more lines left out: outline a smaller part]"
        lines = [*lines[:_MAX_LINES], more]
    return "\n".join(filter(None, [*lines, sources.left_out]))
