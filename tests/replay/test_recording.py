"""Rows in a file that is continued after an interruption."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.replay import (
    Inputs,
    OutputError,
    Recording,
    Source,
    Totals,
    Work,
    check_name,
    run_units,
)
from rolling_chat.replay import recording as module
from tests.support.conversations import assistant, user
from tests.support.replay import write_lines
from tests.support.replay_processes import Deadly

NAMES = ("rows.jsonl", "rows.jsonl.gz", "rows.parquet")
SETTINGS = {"model": "m", "trim_to": 0.6, "tools": ("a", "b")}


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    """Three files, the last of which is cut into units."""
    folder = tmp_path / "talks"
    folder.mkdir()
    for name in ("a", "b"):
        write_lines(
            folder / f"{name}.jsonl", {"id": name, "messages": [user("one"), assistant("two"), user("3")]}
        )
    lines = [
        {"id": f"c{n}", "messages": [user("one"), assistant("two")], "more": "x" * 30_000} for n in range(20)
    ]
    lines[3] = {"massages": []}
    write_lines(folder / "c.jsonl", *lines)
    return Inputs([str(folder)])


@contextmanager
def recorded(path: Path, inputs: Inputs, **settings: Any) -> Iterator[Recording]:
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    source = Source({**SETTINGS, **settings}, inputs.fingerprint())
    recording = Recording.open(path, source, prompts=False)
    try:
        yield recording
    finally:
        recording.close()


def fill(recording: Recording, inputs: Inputs, chunks: int | None = None) -> None:
    """Take in the next `chunks` results, or all."""
    work = Work(Deadly(), recording.encoding)
    reached = recording.reached
    for number, (unit, chunk) in enumerate(run_units(work, inputs.units(reached.unit), 1, reached.done)):
        if number == chunks:
            return
        for tally in chunk.tallies:
            recording.totals.add(tally)
        recording.totals.left_out += len(chunk.problems)
        recording.add(unit, chunk)


def rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        from pyarrow import parquet

        found: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
        return found
    data = path.read_bytes()
    return [
        json.loads(line) for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()
    ]


@pytest.fixture
def wanted(tmp_path: Path, inputs: Inputs) -> list[dict[str, Any]]:
    path = tmp_path / "wanted.jsonl"
    with recorded(path, inputs) as recording:
        fill(recording, inputs)
        recording.finish(is_complete=True)
    found = rows(path)
    assert [row["conversation"] for row in found[:5]] == ["a", "a", "b", "b", "c0"]
    assert len(found) == 23
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_form_holds_the_same_rows_and_no_record_is_left(
    tmp_path: Path, inputs: Inputs, wanted: list[dict[str, Any]], name: str
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    with recorded(folder / name, inputs) as recording:
        fill(recording, inputs)
        recording.finish(is_complete=True)
        assert (recording.totals.conversations, recording.totals.left_out) == (21, 1)
    assert rows(folder / name) == wanted
    assert [file.name for file in folder.iterdir()] == [name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("chunks", [0, 1, 2, 3])
def test_after_an_interrupt_it_goes_on_and_what_was_written_can_be_read(
    tmp_path: Path, inputs: Inputs, wanted: list[dict[str, Any]], name: str, chunks: int
) -> None:
    path = tmp_path / name
    with recorded(path, inputs) as recording:
        fill(recording, inputs, chunks)
        recording.finish(is_complete=False)
    some = rows(path)
    assert some == wanted[: len(some)]
    assert len(some) == 0 if chunks == 0 else len(some) > 0
    with recorded(path, inputs) as recording:
        assert recording.is_resumed == (chunks > 0)
        fill(recording, inputs)
        recording.finish(is_complete=True)
        assert (recording.totals.conversations, recording.totals.left_out) == (21, 1)
    assert rows(path) == wanted


@pytest.mark.parametrize("name", NAMES)
def test_rows_lost_to_a_kill_are_made_again(
    tmp_path: Path, inputs: Inputs, wanted: list[dict[str, Any]], name: str
) -> None:
    path = tmp_path / name
    with recorded(path, inputs) as recording:
        fill(recording, inputs, 1)
        recording.checkpoint()
    file = next(file for file in (tmp_path / f"{name}.unfinished", path) if file.exists())
    with file.open("ab") as torn:
        torn.write(b'{"file": "half of a')
    with recorded(path, inputs) as recording:
        fill(recording, inputs)
        recording.finish(is_complete=True)
    assert rows(path) == wanted


def refusal(path: Path, inputs: Inputs, **settings: Any) -> str:
    with pytest.raises(OutputError) as caught, recorded(path, inputs, **settings):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def begun(tmp_path: Path, inputs: Inputs) -> Path:
    path = tmp_path / "rows.jsonl"
    with recorded(path, inputs) as recording:
        fill(recording, inputs, 1)
        recording.checkpoint()
    return path


def test_other_settings_are_named_and_not_mixed(begun: Path, inputs: Inputs) -> None:
    before = begun.read_bytes()
    assert "was begun with other settings (trim_to was 0.6 and is 0.5): " in refusal(
        begun, inputs, trim_to=0.5
    )
    assert begun.read_bytes() == before


def test_other_transcripts_are_not_mixed(begun: Path, inputs: Inputs) -> None:
    write_lines(Path(inputs.names[0]) / "d.jsonl", {"messages": [user("new")]})
    said = refusal(begun, inputs)
    assert "the transcripts have changed since" in said
    assert "3 files of 573 KB, now 4 files of 573 KB" in said


def test_a_replay_from_a_pipe_cannot_be_continued(begun: Path, inputs: Inputs) -> None:
    fingerprint = replace(inputs.fingerprint(), is_regular=False)
    with pytest.raises(OutputError, match="begun from a pipe"):
        Recording.open(begun, Source(SETTINGS, fingerprint), prompts=False)


def test_a_complete_or_foreign_file_is_not_changed(tmp_path: Path, inputs: Inputs) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("mine\n")
    assert "exists and is complete: remove it, or choose another name" in refusal(path, inputs)
    assert path.read_text() == "mine\n"


def test_a_file_that_became_shorter_is_not_continued(begun: Path, inputs: Inputs) -> None:
    begun.write_bytes(begun.read_bytes()[:10])
    assert "is shorter than it was" in refusal(begun, inputs)


def test_a_record_that_cannot_be_read_is_named(begun: Path, inputs: Inputs) -> None:
    record = begun.with_name("rows.jsonl.progress")
    for text in ("", "[]", "{}", record.read_text().replace('"version": 1', '"version": 2')):
        record.write_text(text)
        assert "rows.jsonl.progress cannot be read: remove it and" in refusal(begun, inputs)


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of this kind")
def test_two_replays_do_not_write_one_file(begun: Path, inputs: Inputs) -> None:
    with recorded(begun, inputs):
        assert "another replay is writing" in refusal(begun, inputs)


def test_a_checkpoint_comes_with_time(
    tmp_path: Path, inputs: Inputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SECONDS", 0.0)
    path = tmp_path / "rows.jsonl"
    with recorded(path, inputs) as recording:
        fill(recording, inputs, 2)
        assert json.loads(path.with_name("rows.jsonl.progress").read_text())["reached"]["rows"] > 0


def test_totals_are_read_as_they_were_written(inputs: Inputs) -> None:
    totals = Totals()
    for _, chunk in run_units(Work(Deadly()), inputs.units(), 1):
        for tally in chunk.tallies:
            totals.add(tally)
    assert Totals.from_json(json.loads(json.dumps(totals.to_json()))) == totals


@pytest.mark.parametrize("name", ["rows.csv", "rows", "rows.json", "nowhere/rows.jsonl"])
def test_an_invalid_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError, match="--output"):
        check_name(tmp_path / name)
