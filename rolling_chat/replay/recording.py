"""Write rows to a file, with a progress record beside it that allows the replay to continue later."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from rolling_chat.figures import plural
from rolling_chat.figures import size as in_bytes
from rolling_chat.messages import Json
from rolling_chat.replay.inputs import AnyUnit, Fingerprint
from rolling_chat.replay.outputs import LINES, PACKED, PARQUET, UNFINISHED, Output, OutputError, open_output
from rolling_chat.replay.result_tables import Totals
from rolling_chat.replay.work import START, Chunk, Encoding, Progress
from rolling_chat.settings.errors import SettingsError
from rolling_chat.settings.toml_file import replace_file
from rolling_chat.text import one_line

PROGRESS = ".progress"
"""The name ending of the progress record."""

_VERSION = 1
_SECONDS = 5.0  # between two checkpoints


@dataclass(slots=True)
class Reached:
    """How far the rows in a file reach: `size` bytes, up to this point of the input."""

    size: int = 0
    rows: int = 0
    unit: tuple[int, int] = (0, 0)
    done: Progress = START


@dataclass(frozen=True, slots=True)
class Source:
    """What rows are made from: the settings by name, and the state of the input at the start."""

    settings: Mapping[str, Json]
    inputs: Fingerprint


class Recording:
    """A file of rows that is being written, and its progress record.

    The record exists while the file is incomplete, and says how much of the file is valid.
    """

    def __init__(self, path: Path, source: Source, reached: Reached, totals: Totals, output: Output) -> None:
        self._record = _record_of(path)
        self._source = source
        self._output = output
        self._saved = time.monotonic()
        self.reached = reached
        self.totals = totals

    @classmethod
    def open(cls, path: Path, source: Source, *, prompts: bool) -> Recording:
        """Start a file, or continue one that was started from the same source.

        Raises OutputError, TranscriptError if pyarrow is missing, and OSError.
        """
        reached, totals = _read_record(path, source) or (Reached(), Totals())
        output = open_output(path, reached.size, prompts=prompts)
        recording = cls(path, source, reached, totals, output)
        recording._save()
        return recording

    @property
    def encoding(self) -> Encoding:
        """The encoding in which rows must be added."""
        return self._output.encoding

    @property
    def is_resumed(self) -> bool:
        """Whether the file already contained rows."""
        return self.reached != Reached()

    def add(self, unit: AnyUnit, chunk: Chunk) -> None:
        """Add the next results. Raises OSError."""
        if chunk.payload:
            self._output.write(chunk.payload)
        self.reached.rows += chunk.rows
        self.reached.unit, self.reached.done = unit.start, chunk.done
        is_late = not self._output.is_packed and time.monotonic() - self._saved >= _SECONDS
        if self._output.is_due or is_late:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Write out all added rows, and record the progress. Raises OSError."""
        self.reached.size = self._output.checkpoint()
        self._save()

    def finish(self, *, is_complete: bool) -> None:
        """Turn the file into a valid one; remove the record if it is complete."""
        self.checkpoint()
        self._output.finish()
        if is_complete:
            self._record.unlink(missing_ok=True)
            self._output.clean_up()

    def close(self) -> None:
        """Close the file, truncated to the last checkpoint."""
        self._output.close()

    def _save(self) -> None:
        record = {
            "version": _VERSION,
            "settings": dict(self._source.settings),
            "inputs": asdict(self._source.inputs),
            "reached": asdict(self.reached),
            "totals": self.totals.to_json(),
        }
        try:
            replace_file(self._record, json.dumps(record, indent=1) + "\n")
        except SettingsError as error:
            raise OSError(str(error)) from error
        self._saved = time.monotonic()


def check_name(path: Path) -> None:
    """Raise OutputError if a file's name reveals no format, or if the file cannot be created."""
    shown = one_line(str(path))
    if not path.name.lower().endswith((*LINES, *PACKED, *PARQUET)):
        raise OutputError(f"--output {shown}: end its name in .jsonl, .jsonl.gz or .parquet")
    if path.is_dir() or not path.parent.is_dir():
        raise OutputError(f"--output {shown}: give the name of a file in a folder that exists")


def files_of(path: Path) -> frozenset[str]:
    """Return the real paths of an output, its unfinished rows, and its progress record."""
    real = path.resolve()
    return frozenset({str(real), f"{real}{UNFINISHED}", f"{real}{PROGRESS}"})


def _record_of(path: Path) -> Path:
    return path.with_name(path.name + PROGRESS)


def _read_record(path: Path, source: Source) -> tuple[Reached, Totals] | None:
    """Read how far a file reaches; None if it is new. Raises OutputError if it is from another source."""
    record, shown = _record_of(path), one_line(str(path))
    if not record.exists():
        with suppress(OSError):
            if path.stat().st_size:
                raise OutputError(f"{shown} exists and is complete: remove it, or choose another name")
        return None
    try:
        value = json.loads(record.read_text(encoding="utf-8"))
        if value["version"] != _VERSION:
            raise ValueError(value["version"])
        settings, inputs = value["settings"], Fingerprint(**value["inputs"])
        reached = value["reached"]
        done = Progress(**reached["done"])
        position = Reached(**{**reached, "unit": tuple(reached["unit"]), "done": done})
        totals = Totals.from_json(value["totals"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(
            f"{one_line(str(record))} cannot be read: remove it and {shown} to begin again"
        ) from error
    _compare(shown, settings, inputs, source)
    return position, totals


def _compare(shown: str, settings: Mapping[str, Json], inputs: Fingerprint, source: Source) -> None:
    now: Mapping[str, Json] = json.loads(json.dumps(dict(source.settings)))
    names = sorted({*settings, *now})
    changed = [name for name in names if settings.get(name) != now.get(name)]
    if changed:
        what = ", ".join(
            f"{name} was {json.dumps(settings.get(name))} and is {json.dumps(now.get(name))}"
            for name in changed[:3]
        )
        raise OutputError(f"{shown} was begun with other settings ({one_line(what)}): {_AGAIN}")
    if not (inputs.is_regular and source.inputs.is_regular):
        raise OutputError(f"{shown} was begun from a pipe, which cannot be read again: {_AGAIN}")
    if inputs != source.inputs:
        then, today = (
            f"{plural(one.files, 'file')} of {in_bytes(one.size)}" for one in (inputs, source.inputs)
        )
        raise OutputError(
            f"the transcripts have changed since {shown} was begun ({then}, now {today}): {_AGAIN}"
        )


_AGAIN = "remove it, and the files beside it, to begin again"
