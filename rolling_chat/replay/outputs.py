"""Write rows to files: JSON Lines, packed or not, and Parquet; each can be continued after an interruption.

A file is complete up to its last checkpoint; anything after that is cut off when the file is opened again.
"""

from __future__ import annotations

import os
import pickle
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol

from rolling_chat.replay.parquet_input import import_pyarrow
from rolling_chat.replay.result_tables import ROW_COLUMNS
from rolling_chat.replay.work import Encoding
from rolling_chat.text import one_line

LINES, PACKED, PARQUET = (".jsonl", ".ndjson"), (".jsonl.gz", ".ndjson.gz"), (".parquet",)
"""The name endings of output files, by format."""

UNFINISHED = ".unfinished"
"""The name ending of a file with the rows of an unfinished Parquet file."""

_LINES_BYTES = 8 * 1024 * 1024  # between two checkpoints
_TABLE_BYTES = 16 * 1024 * 1024
_GROUP_ROWS, _GROUP_PROMPTS = 128 * 1024, 256


class OutputError(Exception):
    """An output file that cannot be written or continued; `str()` is one line for the user."""


class Output(Protocol):
    """A file of rows that is being written."""

    encoding: Encoding
    is_packed: bool

    def write(self, payload: bytes) -> None:
        """Add rows. Raises OSError."""
        ...

    @property
    def is_due(self) -> bool:
        """Whether enough rows were added for a checkpoint."""
        ...

    def checkpoint(self) -> int:
        """Write out all added rows, and return the size of the complete part. Raises OSError."""
        ...

    def finish(self) -> None:
        """Turn the rows up to the last checkpoint into a valid file. Raises OSError."""
        ...

    def close(self) -> None:
        """Close the file, and cut off anything after the last checkpoint."""
        ...

    def clean_up(self) -> None:
        """Remove files that are only needed to continue."""
        ...


def open_output(path: Path, size: int, *, prompts: bool) -> Output:
    """Open a file of rows with `size` complete bytes. Raises OutputError, TranscriptError or OSError."""
    name = path.name.lower()
    if name.endswith(PARQUET):
        return _ParquetOutput(path, size, prompts=prompts)
    return _LinesOutput(path, size, packed=name.endswith(PACKED))


class _AppendOnlyFile:
    """An append-only file, locked for one writer."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._file = path.open("r+b" if path.exists() else "x+b", buffering=0)
        try:
            _lock(self._file, path)
            if self._file.seek(0, os.SEEK_END) < size:
                raise OutputError(f"{one_line(str(path))} is shorter than it was: remove it")
            self.size = size
            self._cut()
        except BaseException:
            self._file.close()
            raise

    def append(self, data: bytes) -> None:
        """Write to the end of the file."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]

    def checkpoint(self) -> int:
        """Wait until everything is on disk, and return the size."""
        os.fsync(self._file.fileno())
        self.size = self._file.tell()
        return self.size

    def close(self) -> None:
        """Close the file, truncated to the last checkpoint."""
        with suppress(OSError):
            self._cut()
        with suppress(OSError):
            self._file.close()

    def _cut(self) -> None:
        self._file.seek(self.size)
        self._file.truncate()


class _LinesOutput:
    """JSON Lines; if packed, each checkpoint writes a gzip member."""

    encoding: Encoding = "lines"

    def __init__(self, path: Path, size: int, *, packed: bool) -> None:
        self._file = _AppendOnlyFile(path, size)
        self.is_packed = packed
        self._packed_rows: list[bytes] = []
        self._size = 0

    def write(self, payload: bytes) -> None:
        self._size += len(payload)
        if self.is_packed:
            self._packed_rows.append(payload)
        else:
            self._file.append(payload)

    @property
    def is_due(self) -> bool:
        return self._size >= _LINES_BYTES

    def checkpoint(self) -> int:
        if self._packed_rows:
            packer = zlib.compressobj(wbits=31)  # gzip, without a time
            self._file.append(packer.compress(b"".join(self._packed_rows)) + packer.flush())
        self._packed_rows, self._size = [], 0
        return self._file.checkpoint()

    def finish(self) -> None:
        pass

    def close(self) -> None:
        self._file.close()

    def clean_up(self) -> None:
        pass


class _ParquetOutput:
    """A Parquet file, which is readable only when finished: until then, rows are in Arrow's stream format."""

    encoding: Encoding = "columns"
    is_packed = False

    def __init__(self, path: Path, size: int, *, prompts: bool) -> None:
        self._pa, self._pq = import_pyarrow()
        self._path = path
        self._unfinished = path.with_name(path.name + UNFINISHED)
        self._file = _AppendOnlyFile(self._unfinished, size)
        self._schema = row_schema(prompts=prompts)
        self._group_rows = _GROUP_PROMPTS if prompts else _GROUP_ROWS
        self._tables: list[Any] = []
        self._size = 0

    def write(self, payload: bytes) -> None:
        rows = pickle.loads(payload)  # noqa: S301 - from one of our own processes
        columns = [
            self._pa.array(_encodable(values) if field.type == self._pa.string() else values, field.type)
            for field, values in zip(self._schema, zip(*rows, strict=True), strict=True)
        ]
        table = self._pa.Table.from_arrays(columns, schema=self._schema)
        self._tables.append(table)
        self._size += table.nbytes

    @property
    def is_due(self) -> bool:
        return self._size >= _TABLE_BYTES

    def checkpoint(self) -> int:
        if self._tables:
            sink = self._pa.BufferOutputStream()
            options = self._pa.ipc.IpcWriteOptions(compression="zstd")
            with self._pa.ipc.new_stream(sink, self._schema, options=options) as writer:
                writer.write_table(self._pa.concat_tables(self._tables).combine_chunks())
            self._file.append(sink.getvalue())
        self._tables, self._size = [], 0
        return self._file.checkpoint()

    def finish(self) -> None:
        new = self._path.with_name(self._path.name + ".new")
        new.unlink(missing_ok=True)
        try:
            with new.open("xb") as file:
                with self._pq.ParquetWriter(file, self._schema, compression="zstd") as writer:
                    for table in self._row_groups():
                        writer.write_table(table)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
        finally:
            new.unlink(missing_ok=True)

    def close(self) -> None:
        self._file.close()

    def clean_up(self) -> None:
        self._unfinished.unlink(missing_ok=True)

    def _row_groups(self) -> Iterator[Any]:
        """Read the rows back, in tables of a fixed number of rows."""
        batches: list[Any] = []
        rows = 0
        with self._unfinished.open("rb") as file:
            while file.tell() < self._file.size:
                for batch in self._pa.ipc.open_stream(file):
                    batches.append(batch)
                    rows += batch.num_rows
                    while rows >= self._group_rows:
                        table = self._pa.Table.from_batches(batches, self._schema).combine_chunks()
                        yield table.slice(0, self._group_rows)
                        batches = table.slice(self._group_rows).to_batches()
                        rows -= self._group_rows
        yield self._pa.Table.from_batches(batches, self._schema).combine_chunks()


def row_schema(*, prompts: bool = False) -> Any:
    """Return the Parquet schema of rows; prompts are JSON text. Raises TranscriptError without pyarrow."""
    pa, _ = import_pyarrow()
    types = {"text": pa.string(), "number": pa.int64(), "yes or no": pa.bool_()}
    columns = [*ROW_COLUMNS.items(), *([("messages", "text")] if prompts else [])]
    return pa.schema([(name, types[kind]) for name, kind in columns])


def _encodable(values: Iterable[str | None]) -> list[str | None]:
    """Replace characters that UTF-8 cannot encode, such as lone surrogates from JSON or file names."""
    return [value if value is None else value.encode("utf-8", "replace").decode() for value in values]


def _lock(file: IO[bytes], path: Path) -> None:
    if sys.platform == "win32":
        return
    import fcntl  # noqa: PLC0415  # not available on every system

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise OutputError(f"another replay is writing {one_line(str(path))}") from error
