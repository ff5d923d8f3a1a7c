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
    assert (touch.action, touch.sha256) == ("read", digest)
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
