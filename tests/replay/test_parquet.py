"""Conversations read from Parquet, and rows written to it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from rolling_chat.replay import Transcript, TranscriptError, read_transcripts
from rolling_chat.replay.parquet_input import parquet_batches
from rolling_chat.replay.reading import read_entries
from tests.support.conversations import assistant, tool, user

pa = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
pq = pytest.importorskip("pyarrow.parquet")

TALK = [user("one"), assistant("", ("a", "f")), tool("a", "two"), user("three")]


def table(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_messages_are_lists_of_structs_or_json(tmp_path: Path) -> None:
    structs = table(tmp_path / "structs.parquet", id=["a", None], messages=[TALK, TALK[:1]])
    as_json = [json.dumps(TALK), json.dumps(TALK[:1])]
    texts = table(tmp_path / "texts.parquet", id=["a", None], messages=as_json)
    for path in (structs, texts):
        first, second = read_transcripts(path)
        assert (first.id, second.id) == ("a", f"{path.stem}:2")
        assert list(first.sources) == TALK
        assert list(second.sources) == TALK[:1]


def test_tools_and_title_come_along(tmp_path: Path) -> None:
    schema = {"type": "function", "function": {"name": "f"}}
    path = table(tmp_path / "x.parquet", messages=[TALK], tools=[json.dumps([schema])], title=["the talk"])
    (talk,) = read_transcripts(path)
    assert (talk.tools, talk.title) == ([schema], "the talk")


def test_a_row_that_is_no_conversation_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    good = json.dumps(TALK)
    path = table(tmp_path / "x.parquet", messages=[good, "{oops", None, '{"role": "user"}', good])
    found = [entry.id if isinstance(entry, Transcript) else str(entry) for entry in read_entries(path)]
    assert [found[0], found[4]] == ["x:1", "x:5"]
    assert found[1].startswith(f"row 2 of {path}: messages is not JSON: ")
    assert found[2].startswith(f"row 3 of {path} is not a conversation")
    assert found[3].startswith(f"row 4 of {path} is not a conversation")


def test_another_schema_is_reported(tmp_path: Path) -> None:
    path = table(tmp_path / "x.parquet", prompt=["a"], answer=["b"])
    with pytest.raises(TranscriptError, match="has no column `messages`: there are prompt, answer"):
        list(read_transcripts(path))


def test_a_file_that_only_looks_like_parquet_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1" + b"x" * 100)
    with pytest.raises(TranscriptError, match=r"cannot read .*parquet"):
        list(read_transcripts(path))


def test_a_large_row_group_is_cut(tmp_path: Path) -> None:
    text = json.dumps([user("some words " * 1_000)])
    path = table(tmp_path / "x.parquet", messages=[f"{text} " + " " * n for n in range(300)])
    batches = list(parquet_batches(path))
    assert len(batches) > 3
    assert len(list(read_transcripts(path))) == 300


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table(tmp_path / "x.parquet", messages=[json.dumps(TALK)])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TranscriptError, match=r"pip install 'rolling-chat\[parquet\]'"):
        list(read_transcripts(path))
