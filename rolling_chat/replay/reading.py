"""Read a file of transcripts in any supported format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rolling_chat.replay.parquet_input import parquet_entries
from rolling_chat.replay.transcripts import (
    PARQUET,
    READ_ERRORS,
    Entry,
    Transcript,
    TranscriptError,
    TranscriptFile,
    cannot_read,
)


def read_transcripts(path: Path) -> Iterator[Transcript]:
    """Read the conversations of a file one at a time; gzip and Parquet are recognized by their first bytes.

    A conversation without an id is named after the file, plus its line number unless that is the first.
    Raises TranscriptError, naming the line, at the first invalid transcript; earlier ones were already
    yielded.
    """
    for entry in read_entries(path):
        if isinstance(entry, TranscriptError):
            raise entry
        yield entry


def read_entries(path: Path) -> Iterator[Entry]:
    """Read the conversations of a file, with errors in place of those that cannot be read."""
    try:
        with path.open("rb") as raw:
            if raw.peek(len(PARQUET)).startswith(PARQUET):
                yield from parquet_entries(path)
            else:
                yield from TranscriptFile.open(path, raw).entries()
    except READ_ERRORS as error:
        yield cannot_read(path, error)
    except TranscriptError as error:
        yield error
