"""What a killed write left behind is removed at the next start, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rolling_chat.process_identity import machine_mark
from rolling_chat.tools.leftover_files import remove_leftovers, temporary_name

HEX = "0123456789abcdef"


@pytest.fixture(scope="module")
def ended() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def _make(folder: Path, machine: str, pid: int, *, age: float = 0.0) -> Path:
    file = folder / f".rolling-chat-{machine}-{pid}-{HEX}"
    file.write_text("half")
    os.utime(file, (time.time() - age,) * 2)
    return file


def test_a_file_of_a_process_that_ended_goes(tmp_path: Path, ended: int) -> None:
    file = _make(tmp_path, machine_mark(), ended)
    assert remove_leftovers([tmp_path], tmp_path) == 1
    assert not file.exists()


def test_what_is_still_written_stays(tmp_path: Path) -> None:
    (tmp_path / temporary_name()).write_text("half")
    assert remove_leftovers([tmp_path], tmp_path) == 0
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_of_another_machine_stays_for_a_day(tmp_path: Path, ended: int) -> None:
    young, old = _make(tmp_path, "0" * 8, ended, age=3_600), _make(tmp_path, "1" * 8, ended, age=100_000)
    assert remove_leftovers([tmp_path], tmp_path) == 1
    assert (young.exists(), old.exists()) == (True, False)


def test_other_names_folders_and_what_lies_behind_a_link_stay(tmp_path: Path, ended: int) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    kept = [_make(outside, machine_mark(), ended), root / ".rolling-chat-notes", root / ".rolling-chat"]
    kept[1].write_text("mine")
    kept[2].mkdir()
    (root / f".rolling-chat-{machine_mark()}-{ended}-{HEX}").mkdir()
    (root / "door").symlink_to(outside)
    assert remove_leftovers([root, root / "door", root / "gone", outside], root) == 0
    assert all(path.exists() for path in kept)


def test_a_link_by_our_name_goes_and_what_it_names_stays(tmp_path: Path, ended: int) -> None:
    (tmp_path / "precious").write_text("x")
    link = tmp_path / f".rolling-chat-{machine_mark()}-{ended}-{HEX}"
    link.symlink_to("precious")
    assert remove_leftovers([tmp_path], tmp_path) == 1
    assert (tmp_path / "precious").read_text() == "x"
