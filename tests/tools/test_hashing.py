"""The hash of what was read is that of the file's own bytes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from rolling_chat.tools import ToolContext, hashing
from rolling_chat.tools.decoding import MAX_RESULT_BYTES
from rolling_chat.tools.hashing import hash_file
from rolling_chat.tools.read_file import ReadFile

CONTENTS = {
    "text": b"one\r\ntwo\n",
    "no newline": b"one",
    "empty": b"",
    "utf-16": "é and more".encode("utf-16"),
    "beyond what is read": b"x" * 80 + b"\n" + b"y" * (MAX_RESULT_BYTES + 5),
}


async def test_a_file_that_is_read_to_a_limit_of_bytes_is_read_in_part(
    folder: Path, context: ToolContext
) -> None:
    (folder / "a.txt").write_bytes(("x" * MAX_RESULT_BYTES).encode("utf-32"))
    (touch,) = (await ReadFile().run({"path": "a.txt"}, context)).files
    assert touch.action == "read in part"


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("lines", [{}, {"start": 1, "end": 1}])
async def test_reading_a_file_or_a_part_of_it_tells_the_hash_of_the_whole(
    name: str, lines: dict[str, int], folder: Path, context: ToolContext
) -> None:
    data = CONTENTS[name]
    (folder / "a.txt").write_bytes(data)
    result = await ReadFile().run({"path": "a.txt", **lines}, context)
    digest = hashlib.sha256(data).hexdigest()
    (touch,) = result.files
    is_part = name == "beyond what is read" or (name == "text" and lines)
    assert (touch.action, touch.sha256) == ("read in part" if is_part else "read", digest)
    assert touch.path.endswith(f"/{folder.name}/a.txt")
    assert hash_file(folder / "a.txt") == digest


def test_what_is_too_long_has_no_hash_and_what_is_not_there_is_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing, "MAX_HASHED_BYTES", 10)
    (folder / "a.txt").write_bytes(b"x" * 11)
    assert hash_file(folder / "a.txt") == ""
    assert hash_file(folder / "b.txt") is None
    assert hash_file(folder) is None


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert hash_file(folder / "pipe") == hashlib.sha256(b"").hexdigest()
