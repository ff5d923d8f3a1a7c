"""Files, folders and patterns, cut into units."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from rolling_chat.replay import AnyUnit, Inputs, Transcript, TranscriptError, read_transcripts
from rolling_chat.replay import transcripts as module
from tests.support.conversations import assistant, user
from tests.support.replay import write_lines

TALK = [user("a question"), assistant("an answer")]
WIDE = [user("words " * 2_000)]


def units_of(*names: Path | str) -> list[AnyUnit]:
    return list(Inputs([str(name) for name in names]).units())


def entries_of(*names: Path | str) -> list[str]:
    """The id of every conversation, and the error of what is none."""
    entries = (entry for unit in units_of(*names) for _, entry, _ in unit.entries())
    return [entry.id if isinstance(entry, Transcript) else str(entry) for entry in entries]


def test_a_folders_transcripts_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a/z.json", "a/y.jsonl.gz", "c.ndjson", ".hidden.jsonl", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_lines(tmp_path / name, {"messages": TALK})
    assert entries_of(tmp_path) == ["y", "z", "b", "c"]


def test_a_pattern_is_found_below_too(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write_lines(tmp_path / "a" / "x.log", {"messages": TALK})
    write_lines(tmp_path / "y.log", {"messages": TALK})
    assert entries_of(tmp_path / "*.log") == ["y"]
    assert entries_of(tmp_path / "**" / "*.log") == ["x", "y"]


def test_a_name_with_the_signs_of_a_pattern_is_a_name_first(tmp_path: Path) -> None:
    write_lines(tmp_path / "x[1].json", {"messages": TALK})
    assert entries_of(tmp_path / "x[1].json") == ["x[1]"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_an_unreadable_entry_in_a_folder_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a_pipe.jsonl")
    (tmp_path / "b_circle").symlink_to(tmp_path)
    (tmp_path / "c_gone.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "d_empty.jsonl").touch()
    (tmp_path / "e_packed.jsonl.gz").write_bytes(gzip.compress(b'{"messages": []}\n')[:-9])
    (tmp_path / "f_bytes.jsonl").write_bytes(b'{"messages": []}\n"\xff"\n{"messages": []}\n')
    write_lines(tmp_path / "g_good.jsonl", {"messages": TALK})
    pipe, gone, empty, first, packed, *rest = entries_of(tmp_path)
    assert pipe == f"{tmp_path}/a_pipe.jsonl is not a regular file: it was left out"
    assert gone == f"cannot read {tmp_path}/c_gone.jsonl: No such file or directory"
    assert "d_empty.jsonl is empty" in empty
    assert first == "e_packed"
    assert packed.startswith(f"cannot read {tmp_path}/e_packed.jsonl.gz: ")
    assert rest == [
        "f_bytes",
        f"line 2 of {tmp_path}/f_bytes.jsonl is not UTF-8: byte 2 is 0xff",
        "f_bytes:3",
        "g_good",
    ]


def test_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    for name in (tmp_path, tmp_path / "*.json", tmp_path / "x.json"):
        with pytest.raises(TranscriptError):
            units_of(name)


def test_the_output_is_no_input(tmp_path: Path) -> None:
    write_lines(tmp_path / "talk.jsonl", {"messages": TALK})
    rows = write_lines(tmp_path / "rows.jsonl", {"conversation": "talk"})
    inputs = Inputs([str(tmp_path)], frozenset({str(rows.resolve())}))
    assert [file.path.name for file in inputs.files()] == ["talk.jsonl"]


@pytest.mark.parametrize("name", ["talks.jsonl", "talks.jsonl.gz"])
def test_a_large_file_is_cut_between_lines_and_reads_the_same(tmp_path: Path, name: str) -> None:
    lines: list[object] = [{"id": f"t{n}", "messages": WIDE} if n % 3 else WIDE for n in range(200)]
    lines[100] = {"massages": []}
    path = write_lines(tmp_path / name, *lines)
    if path.suffix == ".gz":  # of what repeats itself packing leaves nothing
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()), 0))
    units = units_of(path)
    assert len(units) > 5
    assert all(len(unit.data or b"") < 300_000 for unit in units if not isinstance(unit, Transcript))
    found = entries_of(path)
    assert found[:2] == ["talks", "t1"]
    assert found[99] == "talks:100"
    assert found[100].startswith(f"line 101 of {path} is not a conversation")
    assert len(found) == 200


def test_units_come_from_the_middle_on(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", {"messages": TALK})
    write_lines(tmp_path / "b.jsonl", *[{"messages": WIDE}] * 100)
    for number in range(100):
        write_lines(tmp_path / f"c{number}.json", {"messages": TALK})
    inputs = Inputs([str(tmp_path)])
    units = list(inputs.units())
    starts = [unit.start for unit in units]
    assert starts[0] == (0, 0)
    assert (1, 1) in starts
    for at, start in enumerate(starts):
        assert list(inputs.units(start)) == units[at:]


def test_a_line_that_is_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 1024**2)
    path = tmp_path / "x.jsonl"
    good = json.dumps({"messages": TALK}) + "\n"
    path.write_text(good + "x" * 3 * 1024**2 + "\n" + good)
    first, error, third = entries_of(path)
    assert (first, third) == ("x", "x:3")
    assert error.startswith(f"line 2 of {path} is longer than 1 MB")


def test_a_change_of_a_file_changes_the_fingerprint(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", {"messages": TALK})
    inputs = Inputs([str(tmp_path)])
    before = inputs.fingerprint()
    assert inputs.fingerprint() == before
    write_lines(tmp_path / "x.jsonl", {"messages": TALK}, {"messages": TALK})
    after = inputs.fingerprint()
    assert after != before
    assert (after.files, after.size) == (1, path.stat().st_size)


def test_a_transcript_that_is_cut_reads_as_one_that_is_not(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", *[{"messages": WIDE}] * 50)
    assert entries_of(path) == [transcript.id for transcript in read_transcripts(path)]
