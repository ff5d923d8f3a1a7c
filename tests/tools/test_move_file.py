"""move_file and delete_file: nothing is written over, nothing is lost half-way."""

from __future__ import annotations

from pathlib import Path

import pytest

from rolling_chat.messages import GONE
from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.move_file import DeleteFile, MoveFile


async def test_a_file_moves_with_its_bytes_and_mode_into_new_folders(
    folder: Path, context: ToolContext
) -> None:
    (folder / "a.bin").write_bytes(b"\x00\xff\r\n")
    (folder / "a.bin").chmod(0o750)
    result = await MoveFile().run({"path": "a.bin", "to": "new/deep/b.bin"}, context)
    moved = folder / "new" / "deep" / "b.bin"
    assert moved.read_bytes() == b"\x00\xff\r\n"
    assert moved.stat().st_mode & 0o777 == 0o750
    assert not (folder / "a.bin").exists()
    assert result.text == "Moved a.bin to new/deep/b.bin"
    assert result.shown == "rename from a.bin\nrename to new/deep/b.bin"
    assert [(touch.path, touch.sha256 == GONE) for touch in result.files] == [
        (str(moved), False),
        (str(folder / "a.bin"), True),
    ]


async def test_a_link_moves_as_the_link_that_it_is(folder: Path, context: ToolContext) -> None:
    (folder / "link").symlink_to("nowhere")
    await MoveFile().run({"path": "link", "to": "other"}, context)
    assert (folder / "other").readlink() == Path("nowhere")


@pytest.mark.parametrize(
    ("path", "to", "said"),
    [
        ("a", "b", "b exists already: delete it first"),
        ("a", "./a", "both paths are the same"),
        ("a", "sub", "“sub” is a folder"),
        ("sub", "c", "“sub” is a folder"),
        ("missing\x1b", "c", "control characters"),
        ("missing", "c", "There is no “missing” in the working folder"),
        ("a", "c\nd", "control characters"),
        ("a", "", "'to' is missing"),
    ],
)
def test_a_move_that_cannot_be_made_moves_nothing(
    folder: Path, context: ToolContext, path: str, to: str, said: str
) -> None:
    for name in "ab":
        (folder / name).write_text(name)
    (folder / "sub").mkdir()
    with pytest.raises(ToolError, match=said) as caught:
        MoveFile().prepare({"path": path, "to": to}, context)
    assert "\n" not in str(caught.value)
    assert sorted(each.name for each in folder.iterdir()) == ["a", "b", "sub"]
    assert [(folder / name).read_text() for name in "ab"] == ["a", "b"]


async def test_a_file_is_deleted_with_all_of_it_shown(folder: Path, context: ToolContext) -> None:
    (folder / "a").write_text("one\ntwo\n")
    result = await DeleteFile().run({"path": "a"}, context)
    assert not (folder / "a").exists()
    assert result.text == "Deleted a: +0 -2"
    assert result.shown.endswith("-one\n-two")


async def test_of_a_link_only_the_link_is_deleted(folder: Path, context: ToolContext) -> None:
    (folder / "link").symlink_to("../outside.txt")
    await DeleteFile().run({"path": "link"}, context)
    assert not (folder / "link").is_symlink()
    assert (folder.parent / "outside.txt").read_text() == "secret of the neighbour\n"


async def test_a_file_that_changed_after_the_question_is_not_deleted(
    folder: Path, context: ToolContext
) -> None:
    (folder / "a").write_text("one")
    edit = DeleteFile().prepare({"path": "a"}, context)
    (folder / "a").write_text("theirs")
    with pytest.raises(ToolError, match="was changed by somebody else"):
        edit.make(context)
    assert (folder / "a").read_text() == "theirs"
