"""write_file: a new file, or other content for one that this session knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rolling_chat.messages import GONE, JsonObject
from rolling_chat.tools import ToolContext, ToolError, ToolResult
from rolling_chat.tools.move_file import DeleteFile
from rolling_chat.tools.read_file import ReadFile
from rolling_chat.tools.write_file import WriteFile


@pytest.fixture
def seen() -> dict[str, str]:
    """The hashes of the files that the session read or wrote, by path."""
    return {}


@pytest.fixture
def context(context: ToolContext, seen: dict[str, str]) -> ToolContext:
    return replace(context, last_seen=seen.get)


async def _write(context: ToolContext, path: str, content: object) -> ToolResult:
    return await WriteFile().run({"path": path, "content": content}, context)


async def test_a_new_file_is_written_with_the_folders_above_it(folder: Path, context: ToolContext) -> None:
    result = await _write(context, "src/deep/a.txt", "one\ntwo")
    assert (folder / "src" / "deep" / "a.txt").read_bytes() == b"one\ntwo"
    assert result.text == "Wrote the new file src/deep/a.txt: +2 -0"
    assert result.shown.startswith("--- /dev/null\n+++ b/src/deep/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two")


async def test_a_new_file_has_the_mode_that_the_user_gives_new_files(
    folder: Path, context: ToolContext
) -> None:
    (folder / "theirs").touch()
    await _write(context, "ours", "x")
    assert (folder / "ours").stat().st_mode == (folder / "theirs").stat().st_mode


async def test_an_empty_file_can_be_written(folder: Path, context: ToolContext) -> None:
    result = await _write(context, "empty", "")
    assert (folder / "empty").read_bytes() == b""
    assert "an empty file" in result.shown


async def test_a_file_that_was_not_read_is_not_written_over(folder: Path, context: ToolContext) -> None:
    (folder / "a.txt").write_text("theirs")
    with pytest.raises(ToolError, match=r"a\.txt exists and was not read in this session: read it first"):
        await _write(context, "a.txt", "ours")
    assert (folder / "a.txt").read_text() == "theirs"


async def test_a_file_that_was_read_is_written_over_in_its_own_format(
    folder: Path, context: ToolContext, seen: dict[str, str]
) -> None:
    file = folder / "a.txt"
    file.write_bytes(b"one\r\ntwo\r\n")
    file.chmod(0o755)
    (touch,) = (await ReadFile().run({"path": "a.txt"}, context)).files
    seen[touch.path] = touch.sha256
    result = await _write(context, "a.txt", "one\n2")
    assert file.read_bytes() == b"one\r\n2\r\n"
    assert file.stat().st_mode & 0o777 == 0o755
    assert result.text == "Wrote a.txt: +1 -1"


async def test_a_file_that_changed_since_it_was_read_is_not_written_over(
    folder: Path, context: ToolContext, seen: dict[str, str]
) -> None:
    file = folder / "a.txt"
    file.write_text("one")
    (touch,) = (await ReadFile().run({"path": "a.txt"}, context)).files
    seen[touch.path] = touch.sha256
    file.write_text("theirs")
    with pytest.raises(ToolError, match=r"a\.txt has changed since it was read: read it again"):
        await _write(context, "a.txt", "ours")
    assert file.read_text() == "theirs"


async def test_a_file_that_somebody_made_where_we_deleted_one_is_not_written_over(
    folder: Path, context: ToolContext, seen: dict[str, str]
) -> None:
    file = folder / "a.txt"
    file.write_text("one")
    (touch,) = (await DeleteFile().run({"path": "a.txt"}, context)).files
    assert touch.sha256 == GONE
    seen[touch.path] = touch.sha256
    file.write_text("theirs")
    with pytest.raises(ToolError, match="has changed since it was read"):
        await _write(context, "a.txt", "ours")


async def test_what_this_session_wrote_can_be_written_again(
    folder: Path, context: ToolContext, seen: dict[str, str]
) -> None:
    for content in ("one", "two"):
        (touch,) = (await _write(context, "a.txt", content)).files
        seen[touch.path] = touch.sha256
    assert (folder / "a.txt").read_text() == "two"
    with pytest.raises(ToolError, match=r"Nothing would change: a\.txt has this content already"):
        await _write(context, "a.txt", "two")


async def test_a_file_that_appeared_after_the_question_is_not_written_over(
    folder: Path, context: ToolContext
) -> None:
    edit = WriteFile().prepare({"path": "new/a.txt", "content": "ours"}, context)
    (folder / "new").mkdir()
    (folder / "new" / "a.txt").write_text("theirs")
    with pytest.raises(ToolError, match="exists by now: nothing was changed"):
        edit.make(context)
    assert (folder / "new" / "a.txt").read_text() == "theirs"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": "a.txt"}, "'content' is missing"),
        ({"path": "a.txt", "content": ["x"]}, "'content' is missing: give all of the file's text"),
        ({"content": "x"}, "'path' is missing"),
        ({"path": "sub", "content": "x"}, "“sub” is a folder"),
        ({"path": "file/x", "content": "x"}, "not a directory"),
        ({"path": "a\nb", "content": "x"}, "has control characters"),
        ({"path": "a\nb/c", "content": "x"}, "has control characters"),
        ({"path": "\u202egpj.exe", "content": "x"}, "has control characters"),
        ({"path": "x" * 300, "content": "x"}, "file name too long"),
        ({"path": "a.txt", "content": "\ud800"}, "half a character"),
        ({"path": "a.txt", "content": "#!/bin/sh\n\0evil"}, "makes a file binary"),
    ],
)
def test_what_cannot_be_written_is_refused_in_one_line(
    folder: Path, context: ToolContext, arguments: JsonObject, said: str
) -> None:
    (folder / "sub").mkdir()
    (folder / "file").touch()
    with pytest.raises(ToolError, match=said) as caught:
        WriteFile().prepare(arguments, context).make(context)
    assert "\n" not in str(caught.value)
    assert sorted(each.name for each in folder.iterdir()) == ["file", "sub"]
