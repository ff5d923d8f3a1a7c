"""Replay one unit of the input: from its conversations to encoded rows, in chunks of limited size."""

from __future__ import annotations

import json
import pickle
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from rolling_chat.context import CountMemo
from rolling_chat.messages import Json
from rolling_chat.replay.inputs import STDIN
from rolling_chat.replay.picture import Sample
from rolling_chat.replay.result_tables import Tally, as_row
from rolling_chat.replay.run import Replayed
from rolling_chat.replay.transcripts import Entry, Transcript, TranscriptError
from rolling_chat.text import one_line

_CHUNK_BYTES = 256 * 1024
_CHUNK_SECONDS = 0.25
_ROW_BYTES = 200  # the approximate size of a row by column

Row: TypeAlias = dict[str, Json]
Encoding: TypeAlias = Literal["none", "lines", "columns"]


class HasEntries(Protocol):
    """A source of conversations, with their files and the share of the source read so far."""

    def entries(self) -> Iterator[tuple[Path | None, Entry, float]]:
        """Read the conversations one by one."""
        ...


class Replays(Protocol):
    """A planner of a conversation's requests, which knows the model and the settings."""

    def requests(self, transcript: Transcript, memo: CountMemo) -> Iterator[Replayed]:
        """Plan every request of a conversation in order."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a unit is done: the number of conversations, and of rows in the next one."""

    conversations: int = 0
    rows: int = 0


START = Progress()


@dataclass(frozen=True, slots=True)
class Problem:
    """A conversation that was left out: the line for the user, and details for the log."""

    line: str
    details: str = ""


@dataclass(slots=True)
class Chunk:
    """A part of a unit's results: encoded rows, and the outcome of conversations that ended in it.

    `done` is the unit's progress after this chunk, `share` the same from 0 to 1. `notes` are lines for the
    user; `next` may name the conversation that comes next.
    """

    done: Progress = field(default_factory=Progress)
    share: float = 0.0
    rows: int = 0
    payload: bytes = b""
    tallies: list[Tally] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    next: str = ""
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """The work to do for every unit; a value that can be sent to other processes.

    A unit's rows depend on nothing else, so that they are the same in any process. They are encoded as JSON
    Lines, or as values by column.
    """

    replayer: Replays
    encoding: Encoding = "lines"
    prompts: bool = False
    samples: bool = False

    def run(
        self, unit: HasEntries, since: Progress = START, *, by_conversation: bool = False
    ) -> Iterator[Chunk]:
        """Replay a unit from `since` on; with `by_conversation`, report each before it starts."""
        memo = CountMemo()
        chunks = _Chunks(self.encoding, since)
        read = 0.0
        for number, (path, entry, share) in enumerate(unit.entries()):
            if number < since.conversations:
                continue
            skip = since.rows if number == since.conversations else 0
            if isinstance(entry, TranscriptError):
                chunks.leave_out(Problem(str(entry)))
            else:
                if by_conversation:
                    yield chunks.take(next=_name(entry, path))
                yield from self._conversation(entry, path, memo, chunks, skip=skip, shares=(read, share))
            read = share
            if chunks.is_full:
                yield chunks.take()
        yield chunks.take(is_last=True)

    def _conversation(
        self,
        transcript: Transcript,
        path: Path | None,
        memo: CountMemo,
        chunks: _Chunks,
        *,
        skip: int,
        shares: tuple[float, float],
    ) -> Iterator[Chunk]:
        tally = Tally(transcript.id)
        file = "-" if path == STDIN else str(path) if path else None
        before, after = shares
        try:
            for number, replayed in enumerate(self.replayer.requests(transcript, memo)):
                tally.add(replayed)
                if number < skip:
                    continue
                if self.samples:
                    chunks.chunk.samples.append(Sample.of(replayed))
                row = as_row(replayed, file=file, prompt_of=transcript if self.prompts else None)
                done = replayed.at_message / len(transcript.messages)
                chunks.add(row, before + (after - before) * done)
                if chunks.is_full:
                    yield chunks.take()
        except Exception as error:  # later conversations can still be replayed
            line = f"{_name(transcript, path)} was left out: a fault of the program ({type(error).__name__})"
            chunks.leave_out(Problem(line, traceback.format_exc()))
            return
        tally.add_repaired(transcript.repaired)
        chunks.end(tally, after)


class _Chunks:
    """A builder of chunks."""

    def __init__(self, encoding: Encoding, since: Progress) -> None:
        self._encoding = encoding
        self._done = since
        self._begin()

    def _begin(self) -> None:
        self.chunk = Chunk(self._done)
        self._rows: list[Any] = []
        self._size = 0
        self._began = time.monotonic()

    @property
    def is_full(self) -> bool:
        """Whether the chunk is large enough, or it is time to show something."""
        return self._size >= _CHUNK_BYTES or time.monotonic() - self._began >= _CHUNK_SECONDS

    def add(self, row: Row, share: float) -> None:
        """Add the next row of a conversation."""
        self._done = Progress(self._done.conversations, self._done.rows + 1)
        self.chunk.rows += 1
        self.chunk.share = share
        match self._encoding:
            case "lines":
                # ASCII escapes keep control sequences out of a terminal
                line = json.dumps(row) + "\n"
                self._rows.append(line)
                self._size += len(line)
            case "columns":
                values = as_values(row)
                self._rows.append(values)
                self._size += _ROW_BYTES + (len(values[-1]) if "messages" in row else 0)
            case "none":
                pass

    def end(self, tally: Tally, share: float) -> None:
        """Finish a conversation."""
        self.chunk.tallies.append(tally)
        self.chunk.share = share
        self._done = Progress(self._done.conversations + 1)

    def leave_out(self, problem: Problem) -> None:
        """Finish a conversation that cannot be replayed."""
        self.chunk.problems.append(problem)
        self._done = Progress(self._done.conversations + 1)

    def take(self, *, next: str = "", is_last: bool = False) -> Chunk:
        """Return the current chunk, and start the next one."""
        chunk = self.chunk
        chunk.done, chunk.next, chunk.is_last = self._done, next, is_last
        if self._rows:
            lines = self._encoding == "lines"
            chunk.payload = "".join(self._rows).encode("ascii") if lines else pickle.dumps(self._rows)
        self._begin()
        return chunk


def _name(transcript: Transcript, path: Path | None) -> str:
    return one_line(f"{transcript.id} of {path}" if path else transcript.id)


def as_values(row: Mapping[str, Json]) -> tuple[Any, ...]:
    """Return the values of a row for columns; a prompt's messages are JSON text in the last one."""
    values = tuple(row.values())
    return (*values[:-1], json.dumps(values[-1])) if "messages" in row else values
