"""`rolling-chat replay` of many transcripts, by processes and into files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.conversations import assistant, user
from tests.support.patience import PATIENCE_SECONDS, wait_for
from tests.support.processes import wait_until_ended
from tests.support.program import Program
from tests.support.replay import long_conversation, write_lines

SETTINGS = ("--model", "gpt-4o", "--max-input-tokens", "8192")
TALK = [user("one"), assistant("two"), user("three")]


@pytest.fixture(autouse=True)
def _no_model_is_set(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLING_CHAT_MODEL")


@pytest.fixture
def talks(program: Program) -> Path:
    """A folder with a good file, a broken one, and one of many conversations."""
    folder = program.folder / "talks"
    folder.mkdir()
    write_lines(folder / "a.json", TALK)
    (folder / "b.jsonl").write_text('{"messages": []}\n{oops\n')
    lines = [{"id": f"c{n}", "messages": long_conversation(4, 30), "more": "x" * 30_000} for n in range(12)]
    write_lines(folder / "c.jsonl.gz", *lines)
    return folder


def test_many_files_are_replayed_in_order_and_the_broken_one_is_named(program: Program, talks: Path) -> None:
    ran = program("replay", "talks", *SETTINGS)
    assert ran.code == 2
    assert ran.err.startswith("rolling-chat: line 2 of talks/b.jsonl is not JSON")
    assert ran.err.count("\n") == 1
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [row["conversation"] for row in rows[:3]] == ["a", "a", "c0"]
    assert {row["file"] for row in rows} == {"talks/a.json", "talks/c.jsonl.gz"}
    assert program("replay", "talks/*.json", "talks/c.jsonl.gz", *SETTINGS).out == ran.out


def test_two_processes_print_what_one_does(program: Program, talks: Path) -> None:
    one = program("replay", "talks", *SETTINGS)
    two = program("replay", "talks", *SETTINGS, "--jobs", "2")
    assert (two.code, two.out, two.err) == (one.code, one.out, one.err)


def test_the_rows_go_into_a_file_which_is_left_alone_then(program: Program, talks: Path) -> None:
    printed = program("replay", "talks", *SETTINGS).out
    ran = program("replay", "talks", *SETTINGS, "--output", "talks/rows.jsonl")
    assert ran.out == f"{printed.count(chr(10))} rows of 14 conversations, 1 left out → talks/rows.jsonl\n"
    assert (talks / "rows.jsonl").read_text() == printed
    again = program("replay", "talks", *SETTINGS, "--output", "talks/rows.jsonl")
    assert again.code == 2
    assert "talks/rows.jsonl exists and is complete" in again.err


def test_the_prompts_go_into_parquet_as_json(program: Program, talks: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")
    printed = program("replay", "talks", *SETTINGS, "--emit-prompts").out
    program("replay", "talks", *SETTINGS, "--emit-prompts", "--output", "rows.parquet")
    rows = parquet.read_table(program.folder / "rows.parquet").to_pylist()
    wanted = [json.loads(line) for line in printed.splitlines()]
    assert [row | {"messages": json.loads(row["messages"])} for row in rows] == wanted


def test_a_table_of_many_files_has_a_line_a_conversation(program: Program, talks: Path) -> None:
    out = program("replay", "talks", *SETTINGS, "--format", "table").out
    assert [line.split()[0] for line in out.splitlines()[1:5]] == ["a", "b", "c0", "c1"]


def test_a_saved_session_goes_into_a_file(program: Program) -> None:
    session = program("-p", "hello", "--model", "demo/offline", "--output-format", "json").json["session_id"]
    ran = program("replay", session, "--output", "rows.jsonl", "--jobs", "2")
    assert ran.out == "1 row of 1 conversation → rows.jsonl\n"
    assert json.loads((program.folder / "rows.jsonl").read_text())["file"] is None


@contextmanager
def running(program: Program, *argv: str) -> Iterator[subprocess.Popen[str]]:
    """A replay in a process group of its own, as a terminal has it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rolling_chat", "replay", *argv],
        cwd=program.folder,
        env=program.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def workers(pid: int) -> list[int]:
    """The processes of a program that replay for it."""
    try:
        children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return [child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    except OSError:
        return []


@pytest.mark.slow  # a minute of replaying, stopped again and again
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz", "rows.parquet"])
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_replay_that_is_stopped_leaves_no_process_and_goes_on(
    program: Program, name: str, stop: signal.Signals
) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    lines = [{"id": f"c{n}", "messages": long_conversation(12, 60)} for n in range(400)]
    write_lines(program.folder / "talks.jsonl", *lines)
    argv = ("talks.jsonl", *SETTINGS, "--jobs", "2", "--output")
    for _ in range(3):
        _stop_once(program, (*argv, name), program.folder / f"{name}.progress", stop)
    if (program.folder / f"{name}.progress").exists():
        assert program("replay", *argv, name).code == 0
    program("replay", *argv, f"whole_{name}")
    assert _rows(program.folder / name) == _rows(program.folder / f"whole_{name}")


def _stop_once(program: Program, argv: Sequence[str], record: Path, stop: signal.Signals) -> None:
    before = _text(record)
    with running(program, *argv) as process:
        wait_for(lambda: process.poll() is not None or len(workers(process.pid)) == 2)
        pids = workers(process.pid)
        if stop == signal.SIGINT:
            os.killpg(process.pid, stop)  # as Ctrl+C does
        else:
            wait_for(lambda: process.poll() is not None or _text(record) != before)
            process.kill()
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    for pid in pids:
        wait_until_ended(pid)
    if stop == signal.SIGINT:
        assert process.returncode == 130
        assert err.endswith("and the same command goes on\n")


def _text(record: Path) -> str:
    """What a record says; it is gone when the file is complete."""
    try:
        return record.read_text()
    except FileNotFoundError:
        return ""


def _rows(path: Path) -> Any:
    if path.suffix == ".parquet":
        from pyarrow import parquet

        return parquet.read_table(path)
    if path.suffix == ".gz":
        import gzip

        return gzip.decompress(path.read_bytes())
    return path.read_bytes()
