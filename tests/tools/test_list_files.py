from __future__ import annotations

import os
from pathlib import Path

import pytest

from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.list_files import ListFiles


async def list_files(context: ToolContext, **arguments: object) -> list[str]:
    return (await ListFiles().run(arguments, context)).text.splitlines()


async def test_names_are_sorted_and_folders_and_links_are_told_apart(
    folder: Path, context: ToolContext
) -> None:
    (folder / "b.txt").touch()
    (folder / ".hidden").touch()
    (folder / "sub").mkdir()
    (folder / "a-link").symlink_to("b.txt")
    assert await list_files(context) == [".hidden", "a-link -> b.txt", "b.txt", "sub/"]
    assert await list_files(context, path="sub") == ["[sub is empty]"]


async def test_a_file_points_to_the_tool_that_reads_it(folder: Path, context: ToolContext) -> None:
    (folder / "a.txt").touch()
    with pytest.raises(ToolError, match=r"a\.txt is a file, not a folder; read_file"):
        await list_files(context, path="a.txt")


async def test_hostile_names_stay_one_line_of_sound_text(folder: Path, context: ToolContext) -> None:
    for name in (b"new\nline", b"esc\x1b[2J", b"caf\xe9", "grün".encode()):
        _touch(folder / os.fsdecode(name))
    names = await list_files(context)
    assert names == ["caf<0xE9>", "esc␛[2J", "grün", "new␊line"]


async def test_a_folder_of_very_many_files_is_cut_and_says_so(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rolling_chat.tools.list_files._MAX_NAMES", 10)
    for number in range(15):
        (folder / f"{number:02}").touch()
    names = await list_files(context)
    assert names[:10] == [f"{number:02}" for number in range(10)]
    assert names[10].startswith("[5 more names left out")


def _touch(file: Path) -> None:
    file.touch()
