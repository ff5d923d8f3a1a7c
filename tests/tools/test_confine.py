"""No path leads out of the working folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rolling_chat.messages import JsonObject
from rolling_chat.tools import Tool, ToolContext, ToolError, ToolResult, confine
from rolling_chat.tools.confine import open_inside, resolve_inside, resolve_parent
from rolling_chat.tools.list_files import ListFiles
from rolling_chat.tools.read_file import ReadFile
from rolling_chat.tools.search_files import SearchFiles

READERS: list[tuple[Tool, JsonObject]] = [
    (ReadFile(), {}),
    (ListFiles(), {}),
    (SearchFiles(), {"pattern": "secret"}),
]
HOSTILE = [
    "../outside.txt",
    "..",
    "../",
    "sub/../../outside.txt",
    "/etc/passwd",
    "/",
    "~",
    "~/outside.txt",
    "~root/.profile",
    "link.txt",
    "folder-link/outside.txt",
    "folder-link",
    "loop",
    "a\x00b",
    "\ud800",
    "x" * 5_000,
    "sub/" * 3_000,
    "/proc/self/environ",
    "/dev/zero",
    "\\\\server\\share",
    "C:\\Windows",
    "sub/missing",
]


@pytest.fixture
def trapped(folder: Path) -> Path:
    (folder / "sub").mkdir()
    (folder / "link.txt").symlink_to(folder.parent / "outside.txt")
    (folder / "folder-link").symlink_to(folder.parent)
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.mark.usefixtures("trapped")
@pytest.mark.parametrize(("tool", "more"), READERS, ids=lambda value: getattr(value, "name", ""))
@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: ascii(path[:24]))
async def test_a_path_that_leads_outside_is_refused_in_one_line(
    tool: Tool, more: JsonObject, path: str, context: ToolContext
) -> None:
    with pytest.raises(ToolError) as caught:
        await tool.run({"path": path, **more}, context)
    said = str(caught.value)
    assert "\n" not in said
    assert "secret" not in said
    assert len(said) < 400
    said.encode("utf-8")


async def test_a_neighbour_whose_name_begins_like_the_folder_is_outside(
    folder: Path, context: ToolContext
) -> None:
    neighbour = folder.parent / "work-of-others"
    neighbour.mkdir()
    (neighbour / "a.txt").write_text("secret")
    with pytest.raises(ToolError, match="outside the working folder"):
        await ReadFile().run({"path": "../work-of-others/a.txt"}, context)


async def test_links_and_dots_that_stay_inside_are_followed(folder: Path, context: ToolContext) -> None:
    (folder / "sub").mkdir()
    (folder / "a.txt").write_text("here")
    (folder / "sub" / "link.txt").symlink_to("../a.txt")
    for path in ("sub/link.txt", "sub/../a.txt", "./a.txt", str(folder / "a.txt"), "~/work/a.txt"):
        assert (await ReadFile().run({"path": path}, context)).text == "here"


async def test_a_working_folder_that_is_itself_a_link_works(folder: Path, context: ToolContext) -> None:
    (folder / "a.txt").write_text("here")
    door = folder.parent / "door"
    door.symlink_to(folder)
    result = await ReadFile().run({"path": "a.txt"}, ToolContext(door, context.environ))
    assert result.text == "here"


@pytest.mark.parametrize(
    "swap",
    [
        lambda folder: _replace_by_link(folder / "sub" / "a.txt", folder.parent / "outside.txt"),
        lambda folder: _replace_by_link(folder / "sub", folder.parent),
    ],
    ids=["the file", "a folder on the way"],
)
def test_a_link_put_in_the_way_after_the_check_leads_nowhere(
    swap: Callable[[Path], None], folder: Path, context: ToolContext
) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "a.txt").write_text("here")
    (folder.parent / "a.txt").write_text("secret")
    resolved = resolve_inside("sub/a.txt", context)
    swap(folder)
    with pytest.raises(ToolError, match="cannot be read"):
        open_inside(resolved, context)


async def test_a_pipe_is_refused_and_not_waited_for(folder: Path, context: ToolContext) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(ToolError, match="not a regular file"):
        await ReadFile().run({"path": "pipe"}, context)


async def test_a_search_does_not_follow_links_out_of_the_folder(
    trapped: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    (trapped / "a.txt").write_text("a secret of our own\n")

    async def search() -> ToolResult:
        return await SearchFiles().run({"pattern": "secret"}, context)

    assert (await search()).text == "a.txt:1:a secret of our own"
    monkeypatch.setattr("rolling_chat.tools.search_files.find_program", lambda *_: None)
    assert (await search()).text == "a.txt:1:a secret of our own"


def _replace_by_link(path: Path, target: Path) -> None:
    path.rename(path.with_name(f"{path.name}.was"))
    path.symlink_to(target)


@pytest.mark.parametrize("engine", ["ripgrep", "python"])
@pytest.mark.parametrize("tool", [ListFiles(), SearchFiles()], ids=lambda tool: tool.name)
@pytest.mark.parametrize("swapped", ["sub", "sub/deep", "sub/deep/a.txt"])
async def test_what_is_swapped_for_a_link_between_check_and_use_shows_nothing(
    tool: Tool, swapped: str, engine: str, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = context.folder
    outside = folder.parent / "theirs"
    for place in (folder / "sub", outside):
        (place / "deep").mkdir(parents=True)
        (place / "deep" / "a.txt").write_text("secret" if place == outside else "ours")
        (place / "deep" / f"of-{place.name}").touch()
    if engine == "python":
        monkeypatch.setattr("rolling_chat.tools.search_files.find_program", lambda *_: None)
    target = "sub/deep/a.txt" if swapped.endswith("txt") and tool.name == "search_files" else "sub/deep"

    def check_and_swap(path: str, where: ToolContext) -> Path:
        resolved = resolve_inside(path, where)
        _replace_by_link(folder / swapped, outside / Path(swapped).relative_to("sub"))
        return resolved

    monkeypatch.setattr(f"rolling_chat.tools.{tool.name}.resolve_inside", check_and_swap)
    try:
        said = (await tool.run({"path": target, "pattern": "[s]ecret|[o]urs"}, context)).text
    except ToolError as error:
        said = str(error)
    assert "secret" not in said
    assert "of-theirs" not in said


@pytest.mark.parametrize("tool", [ReadFile(), ListFiles(), SearchFiles()], ids=lambda tool: tool.name)
async def test_a_path_outside_answers_the_same_whether_it_is_there_or_not(
    tool: Tool, folder: Path, context: ToolContext
) -> None:
    (folder / "door").symlink_to(folder.parent / "not-there")
    for path in ("../outside.txt", "../not-there", "../../x", "/x", "/etc/passwd", "~/not-there", "door"):
        with pytest.raises(ToolError, match="is outside the working folder; tools read only inside it"):
            await tool.run({"path": path, "pattern": "x"}, context)


@pytest.mark.parametrize("path", ["a.txt.", "a.txt ", ".git./x", "a:b", "sub/a.txt::$DATA", "sub /a"])
def test_on_windows_a_name_that_means_another_file_is_refused(
    path: str, folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / path).parent.mkdir(exist_ok=True)
    (folder / path).touch()
    assert resolve_inside(path, context) == resolve_parent(path, context)
    monkeypatch.setattr(confine, "_IS_WINDOWS", True)
    for resolve in (resolve_inside, resolve_parent):
        with pytest.raises(ToolError, match="cannot be used as a path"):
            resolve(path, context)
    assert resolve_parent("./sub/../a.b", context) == folder / "a.b"
