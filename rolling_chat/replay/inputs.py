"""Split the input of a replay into units of limited size: files, folders and patterns, in a fixed order."""

from __future__ import annotations

import glob
import hashlib
import io
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from rolling_chat.figures import plural
from rolling_chat.replay.parquet_input import batch_entries, parquet_batches
from rolling_chat.replay.reading import read_entries
from rolling_chat.replay.transcripts import (
    PARQUET,
    READ_ERRORS,
    Entry,
    Transcript,
    TranscriptError,
    TranscriptFile,
    cannot_read,
    name_of,
)
from rolling_chat.text import one_line

SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz", ".parquet")
"""The name endings of files that are read from a folder."""

# About a quarter of a second of work: a lost worker loses little, and few results wait for an earlier unit.
_UNIT_BYTES = 256 * 1024
_UNIT_FILES = 64

STDIN = Path("/dev/stdin")


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read; `error` is set if it cannot be read."""

    path: Path
    size: int = 0
    modified: int = 0
    is_regular: bool = False
    is_folder: bool = False
    error: str = ""

    @classmethod
    def first_part(cls, path: Path, *, pipes: bool) -> InputFile:
        """Inspect a path; without `pipes` it must be a regular file, so that reading never blocks."""
        try:
            status = path.stat()
        except OSError as error:
            return cls(path, error=str(cannot_read(path, error)))
        is_regular = stat.S_ISREG(status.st_mode)
        if is_regular or pipes:
            return cls(path, status.st_size if is_regular else 0, status.st_mtime_ns, is_regular)
        problem = f"{name_of(path)} is not a regular file: it was left out"
        return cls(path, is_folder=stat.S_ISDIR(status.st_mode), error=problem)

    @property
    def is_small(self) -> bool:
        """Whether it is read as a whole, grouped with other files."""
        return bool(self.error) or (self.is_regular and self.size <= _UNIT_BYTES)


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of the input that one process replays at a time.

    `start` is its position in the input: the index of its first file, and its index within that file. It
    consists of whole files, or of a part of one as `data`, lines or rows of Parquet, preceded by `before`
    others. An `error` comes after the valid entries.
    """

    start: tuple[int, int]
    size: int
    files: tuple[InputFile, ...]
    data: bytes | None = None
    is_whole: bool = False
    is_parquet: bool = False
    before: int = 0
    error: str = ""

    def entries(self) -> Iterator[tuple[Path | None, Entry, float]]:
        """Read the conversations, each with its file and the share of the unit read so far."""
        for index, file in enumerate(self.files):
            for entry in self._entries_of(file):
                read = entry.read if isinstance(entry, Transcript) else 0.0
                yield file.path, entry, (index + read) / len(self.files)
        if self.error:
            yield self.files[-1].path, TranscriptError(self.error), 1.0

    @property
    def where(self) -> str:
        """A short description for the user: the file, and the part of it."""
        name, more = name_of(self.files[0].path), len(self.files) - 1
        if more:
            return f"{name} and {plural(more, 'other file')}"
        part = f" after {'row' if self.is_parquet else 'line'} {self.before:,}" if self.before else ""
        return f"{name}{part}"

    def _entries_of(self, file: InputFile) -> Iterator[Entry]:
        if self.data is None:
            return iter([TranscriptError(file.error)]) if file.error else read_entries(file.path)
        if self.is_parquet:
            return batch_entries(file.path, self.before, self.data)
        lines = TranscriptFile(file.path, io.BytesIO(self.data), lines_before=self.before)
        return lines.entries() if self.is_whole else lines.line_entries()


@dataclass(frozen=True, slots=True)
class GivenUnit:
    """A conversation in memory, as a unit."""

    transcript: Transcript
    start: tuple[int, int] = (0, 0)
    size: int = 0

    @property
    def where(self) -> str:
        """A short description for the user."""
        return one_line(self.transcript.id)

    def entries(self) -> Iterator[tuple[Path | None, Entry, float]]:
        """Yield the conversation, without a file."""
        yield None, self.transcript, 1.0


AnyUnit: TypeAlias = Unit | GivenUnit


@dataclass(frozen=True, slots=True)
class Inputs:
    """Files, folders and patterns from the command line; `without` are real paths to leave out."""

    names: Sequence[str]
    without: frozenset[str] = frozenset()

    def files(self) -> Iterator[InputFile]:
        """Find the files one by one; those below a folder are sorted by name.

        Raises TranscriptError for a name that matches nothing.
        """
        for name in self.names:
            yield from self._files_of(name)

    def fingerprint(self) -> Fingerprint:
        """Compute a fingerprint of all files. Raises TranscriptError for a name that matches nothing."""
        digest, count, size, is_regular = hashlib.sha256(), 0, 0, True
        for file in self.files():
            count, size = count + 1, size + file.size
            is_regular = is_regular and (file.is_regular or bool(file.error))
            digest.update(f"{file.path}\0{file.size}\0{file.modified}\n".encode(errors="surrogateescape"))
        return Fingerprint(digest.hexdigest(), count, size, is_regular)

    def units(self, since: tuple[int, int] = (0, 0)) -> Iterator[Unit]:
        """Split the input into units, from `since` on. Raises TranscriptError as `files` does."""
        group: list[InputFile] = []
        first = 0
        for index, file in enumerate(self.files()):
            if index < since[0]:
                continue
            is_full = len(group) >= _UNIT_FILES or sum(one.size for one in group) + file.size > _UNIT_BYTES
            if group and (is_full or not file.is_small):
                yield _group_unit(first, group)
                group = []
            if not file.is_small:
                first_part = since[1] if index == since[0] else 0
                yield from (unit for unit in _file_units(index, file) if unit.start[1] >= first_part)
                continue
            if not group:
                first = index
            group.append(file)
        if group:
            yield _group_unit(first, group)

    def _files_of(self, name: str) -> Iterator[InputFile]:
        path = STDIN if name == "-" else Path(name)
        try:
            is_folder, is_there = path.is_dir(), path.exists() or path.is_symlink()
        except OSError as error:
            yield InputFile(path, error=str(cannot_read(path, error)))
            return
        if is_folder:
            found = self._files_below(path)
            first = next(found, None)
            if first is None:
                raise TranscriptError(f"there is no transcript below {name_of(path)}")
            yield first
            yield from found
        elif is_there:
            yield InputFile.first_part(path, pipes=True)
        elif glob.has_magic(name):
            named = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 - the name may be absolute
            for one in named:
                yield from self._file(Path(one))
            if not named:
                raise TranscriptError(f"no file is named like {name_of(path)}")
        else:
            raise TranscriptError(f"there is no file {name_of(path)}")

    def _files_below(self, folder: Path) -> Iterator[InputFile]:
        """Find the files below a folder. Links to folders are not followed, because they may form a loop."""
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            yield InputFile(folder, error=str(cannot_read(folder, error)))
            return
        for entry in found:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._files_below(Path(entry.path))
            elif entry.name.lower().endswith(SUFFIXES):
                yield from self._file(Path(entry.path))

    def _file(self, path: Path) -> Iterator[InputFile]:
        file = InputFile.first_part(path, pipes=False)
        if not file.is_folder and not (self.without and os.path.realpath(path) in self.without):
            yield file


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The state of the input: a change of a name, a size or a modification time changes `digest`."""

    digest: str
    files: int
    size: int
    is_regular: bool = True


def _group_unit(first: int, files: Iterable[InputFile]) -> Unit:
    group = tuple(files)
    return Unit((first, 0), sum(file.size for file in group), group)


def _file_units(index: int, file: InputFile) -> Iterator[Unit]:
    """Split one file into units: by lines or rows, or as a whole if it is a single value."""
    try:
        with file.path.open("rb") as raw:
            if not raw.peek(len(PARQUET)).startswith(PARQUET):
                yield from _line_units(index, file, TranscriptFile.open(file.path, raw))
                return
        yield from _row_units(index, file)
    except READ_ERRORS as error:
        yield Unit((index, 0), file.size, (file,), b"", error=str(cannot_read(file.path, error)))
    except TranscriptError as error:
        yield Unit((index, 0), file.size, (file,), b"", error=str(error))


def _line_units(index: int, file: InputFile, lines: TranscriptFile) -> Iterator[Unit]:
    first, has_lines = lines.first_lines()
    if not has_lines:
        whole = None if file.is_regular else lines.rest(first)
        yield Unit((index, 0), file.size, (file,), whole, is_whole=True)
        return
    for first_part, (before, data) in enumerate(lines.chunks(first, _UNIT_BYTES)):
        yield _part_unit((index, first_part), file, before, data)


def _row_units(index: int, file: InputFile) -> Iterator[Unit]:
    if not file.is_regular:
        raise TranscriptError(f"{name_of(file.path)} is Parquet, which cannot be read from a pipe")
    for first_part, (before, data) in enumerate(parquet_batches(file.path)):
        yield _part_unit((index, first_part), file, before, data, is_parquet=True)


def _part_unit(
    start: tuple[int, int],
    file: InputFile,
    before: int,
    data: bytes | TranscriptError,
    *,
    is_parquet: bool = False,
) -> Unit:
    if isinstance(data, TranscriptError):
        return Unit(start, 0, (file,), b"", error=str(data))
    # the size of the data, which for packed files is larger than that of the file
    return Unit(start, len(data), (file,), data, is_parquet=is_parquet, before=before)
