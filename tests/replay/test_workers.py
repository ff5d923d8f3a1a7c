"""Units of the input in parallel processes, some of which die."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rolling_chat.replay import Chunk, Inputs, Work, run_units
from tests.support.conversations import assistant, user
from tests.support.replay import write_lines
from tests.support.replay_processes import Deadly

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no kill -9 here")

NAMES = [f"talk{number}" for number in range(6)]


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    """Files of a conversation each, too large to go into one unit."""
    folder = tmp_path / "talks"
    folder.mkdir()
    for name in NAMES:
        messages = [user("one"), assistant("two"), user("three")]
        write_lines(folder / f"{name}.jsonl", {"id": name, "messages": messages, "more": "x" * 140_000})
    return folder


def replayed(talks: Path, jobs: int, replayer: Deadly) -> list[Chunk]:
    inputs = Inputs([str(talks)])
    return [chunk for _, chunk in run_units(Work(replayer), inputs.units(), jobs)]


def conversations(chunks: list[Chunk]) -> list[str]:
    return [json.loads(row)["conversation"] for chunk in chunks for row in chunk.payload.splitlines()]


def test_two_processes_make_the_rows_of_one_though_one_of_them_dies(talks: Path, tmp_path: Path) -> None:
    one = replayed(talks, 1, Deadly())
    two = replayed(talks, 2, Deadly(frozenset({"talk2"}), once=tmp_path / "died"))
    assert b"".join(chunk.payload for chunk in two) == b"".join(chunk.payload for chunk in one)
    assert conversations(two) == [name for name in NAMES for _ in range(2)]
    [note] = [note for chunk in two for note in chunk.notes]
    assert note.startswith("a process was ended by SIGKILL while replaying ")
    assert note.endswith(": it is replayed again")


@pytest.mark.slow  # five processes, one after the other
def test_a_conversation_that_kills_one_process_after_the_other_is_named_and_left_out(talks: Path) -> None:
    chunks = replayed(talks, 2, Deadly(frozenset({"talk2"})))
    assert conversations(chunks) == [name for name in NAMES if name != "talk2" for _ in range(2)]
    [problem] = [problem.line for chunk in chunks for problem in chunk.problems]
    assert problem.startswith(f"talk2 of {talks}")
    assert problem.endswith("was left out: every process that replayed it was ended by SIGKILL")


def test_a_fault_of_the_program_costs_one_conversation(talks: Path) -> None:
    chunks = replayed(talks, 1, Deadly(broken=frozenset({"talk4"})))
    assert conversations(chunks) == [name for name in NAMES if name != "talk4" for _ in range(2)]
    [problem] = [problem for chunk in chunks for problem in chunk.problems]
    assert problem.line.endswith("was left out: a fault of the program (RuntimeError)")
    assert "no plan for this one" in problem.details
