"""Read conversations from Parquet: one conversation per row, with its messages in a column.

`messages` is a list of structs with the fields of a message, or the JSON text of an array; `tools` is the
same for the offered schemas. `id` and `title` are optional. Other columns are not read.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rolling_chat.lenient_json import read_json_with_nulls
from rolling_chat.messages import Json, JsonObject
from rolling_chat.replay.transcripts import (
    Entry,
    TranscriptError,
    cannot_read,
    make_transcript,
    name_of,
    stem_of,
)
from rolling_chat.text import one_line

MISSING = "Parquet needs the extra parquet: pip install 'rolling-chat[parquet]'"

_COLUMNS = ("id", "messages", "tools", "title")
_JSON_COLUMNS = ("messages", "tools")
_BATCH_BYTES = 256 * 1024
_MAX_BATCH_ROWS = 1_000
_READ_AHEAD = 1024 * 1024


def parquet_entries(path: Path) -> Iterator[Entry]:
    """Read the conversations of a file up to an error. Raises TranscriptError if none can be read."""
    for rows_before, data in parquet_batches(path):
        if isinstance(data, TranscriptError):
            yield data
        else:
            yield from batch_entries(path, rows_before, data)


def parquet_batches(path: Path) -> Iterator[tuple[int, bytes | TranscriptError]]:
    """Split a file into batches of rows, each with the number of rows before it, for `batch_entries`.

    An unreadable part is replaced by its error, and ends the file. Raises TranscriptError if there is nothing
    to read.
    """
    pa, pq = import_pyarrow()
    before = 0
    try:
        # without pre-buffering, pages are read on demand: a row group may be as large as the file
        with pq.ParquetFile(path, buffer_size=_READ_AHEAD, pre_buffer=False) as file:
            names = file.schema_arrow.names
            if "messages" not in names:
                shown = ", ".join(one_line(name, 30) for name in names[:8])
                raise TranscriptError(f"{name_of(path)} has no column `messages`: there are {shown}")
            columns = [name for name in _COLUMNS if name in names]
            rows = _batch_rows(file.metadata)
            for batch in file.iter_batches(batch_size=rows, columns=columns, use_threads=False):
                sink = io.BytesIO()
                with pa.ipc.new_stream(sink, batch.schema) as writer:
                    writer.write_batch(batch)
                yield before, sink.getvalue()
                before += batch.num_rows
    except (OSError, pa.ArrowException) as error:
        yield before, cannot_read(path, error)


def batch_entries(path: Path, rows_before: int, data: bytes) -> Iterator[Entry]:
    """Read the conversations of a batch; one without an id is named after its row, counted from 1."""
    pa, _ = import_pyarrow()
    rows = pa.ipc.open_stream(data).read_all().to_pylist(maps_as_pydicts="lossy")
    for number, row in enumerate(rows, rows_before + 1):
        name, where = f"{stem_of(path)}:{number}", f"row {number} of {name_of(path)}"
        try:
            yield make_transcript(row_value(row, where), name, where)
        except TranscriptError as error:
            yield error


def row_value(row: Mapping[str, Any], where: str) -> JsonObject:
    """Return a row as an object with `messages`, from either format. Raises TranscriptError."""
    value: dict[str, Json] = {name: row[name] for name in _COLUMNS if row.get(name) is not None}
    for name in _JSON_COLUMNS:
        given = value.get(name)
        if isinstance(given, str | bytes):
            try:
                value[name] = read_json_with_nulls(given.encode() if isinstance(given, str) else given)
            except ValueError as error:
                raise TranscriptError(f"{where}: {name} is not JSON: {one_line(str(error), 120)}") from error
        elif given is not None:
            value[name] = [_without_nulls(item, outermost=name == "messages") for item in _as_list(given)]
    return value


def import_pyarrow() -> tuple[Any, Any]:
    """Import pyarrow and its Parquet module. Raises TranscriptError with installation instructions."""
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise TranscriptError(MISSING) from error
    return pa, pq


def _as_list(value: Json) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _without_nulls(value: Any, *, outermost: bool = False) -> Any:
    """Remove fields that a struct has only because other rows have them; a message may lack content."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _without_nulls(item)
        for name, item in value.items()
        if item is not None or (outermost and name == "content")
    }


def _batch_rows(metadata: Any) -> int:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    size: int = sum(group.total_byte_size for group in groups)
    rows: int = _BATCH_BYTES * metadata.num_rows // max(size, 1)
    return max(1, min(_MAX_BATCH_ROWS, rows))
