"""Replay transcripts through the pipeline: rows, tables and a picture, by parallel processes, into files."""

from rolling_chat.replay.inputs import AnyUnit, Fingerprint, GivenUnit, Inputs
from rolling_chat.replay.interrupts import deferred_interrupts
from rolling_chat.replay.outputs import OutputError, row_schema
from rolling_chat.replay.parquet_input import row_value
from rolling_chat.replay.picture import Sample, draw_picture
from rolling_chat.replay.reading import read_transcripts
from rolling_chat.replay.recording import Recording, Source, check_name, files_of
from rolling_chat.replay.result_tables import Tally, Totals, as_row, draw_table, refusals_line, repairs_line
from rolling_chat.replay.run import Replayed, replay, request_points
from rolling_chat.replay.transcripts import (
    Transcript,
    TranscriptError,
    make_transcript,
    session_transcript,
)
from rolling_chat.replay.work import START, Chunk, Problem, Work
from rolling_chat.replay.workers import WorkersError, run_units

__all__ = [
    "START",
    "AnyUnit",
    "Chunk",
    "Fingerprint",
    "GivenUnit",
    "Inputs",
    "OutputError",
    "Problem",
    "Recording",
    "Replayed",
    "Sample",
    "Source",
    "Tally",
    "Totals",
    "Transcript",
    "TranscriptError",
    "Work",
    "WorkersError",
    "as_row",
    "check_name",
    "deferred_interrupts",
    "draw_picture",
    "draw_table",
    "files_of",
    "make_transcript",
    "read_transcripts",
    "refusals_line",
    "repairs_line",
    "replay",
    "request_points",
    "row_schema",
    "row_value",
    "run_units",
    "session_transcript",
]
