"""A transcript through the pipeline, request by request: rows, tables, a picture."""

from rolling_chat.replay.picture import Sample, draw_picture
from rolling_chat.replay.result_tables import Tally, as_row, draw_table, refusals_line, repairs_line
from rolling_chat.replay.run import Replayed, replay, request_points
from rolling_chat.replay.transcripts import Transcript, TranscriptError, read_transcripts, session_transcript

__all__ = [
    "Replayed",
    "Sample",
    "Tally",
    "Transcript",
    "TranscriptError",
    "as_row",
    "draw_picture",
    "draw_table",
    "read_transcripts",
    "refusals_line",
    "repairs_line",
    "replay",
    "request_points",
    "session_transcript",
]
