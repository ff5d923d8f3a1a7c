from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from rolling_chat.text import printable
from rolling_chat.tools import ToolContext, ToolError, search_process
from rolling_chat.tools.search_files import SearchFiles

_DEEP = 1_600  # folders


@pytest.fixture(params=["ripgrep", "python"], autouse=True)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test runs with ripgrep, where there is one, and with the program's own search."""
    if request.param == "python":
        monkeypatch.setattr("rolling_chat.tools.search_files.find_program", lambda *_: None)
    elif shutil.which("rg") is None:
        pytest.skip("no ripgrep on this machine")
    return str(request.param)


async def search(context: ToolContext, pattern: object, **more: object) -> str:
    return (await SearchFiles().run({"pattern": pattern, **more}, context)).text


@pytest.fixture
def sources(folder: Path) -> Path:
    (folder / "src").mkdir()
    (folder / "src" / "b.py").write_text("import os\n\ndef needle():\n    return os\n")
    (folder / "a.txt").write_text("hay\nneedle in hay\r\n")
    (folder / ".hidden").write_text("needle\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "packed").write_text("needle\n")
    (folder / "data.bin").write_bytes(b"needle\x00needle\n")
    return folder


@pytest.mark.usefixtures("sources")
async def test_matches_come_as_file_line_and_text_in_order(context: ToolContext) -> None:
    assert await search(context, "needle") == (
        ".hidden:1:needle\na.txt:2:needle in hay\nsrc/b.py:3:def needle():"
    )


@pytest.mark.usefixtures("sources")
async def test_a_path_narrows_the_search_to_a_folder_or_a_file(context: ToolContext) -> None:
    assert await search(context, r"^\s+return", path="src") == "src/b.py:4:    return os"
    assert await search(context, "needle", path="a.txt") == "a.txt:2:needle in hay"


@pytest.mark.usefixtures("sources")
async def test_nothing_found_is_said(context: ToolContext) -> None:
    assert await search(context, "no such thing") == "[no match for 'no such thing' in .]"


@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize("pattern", ["(", "[z-a]", "*x", "(?P<n>a)(?P<n>b)"])
async def test_a_bad_pattern_is_an_error_in_one_line(pattern: str, context: ToolContext) -> None:
    with pytest.raises(ToolError, match=r"is no regular expression of Python's: \w") as caught:
        await search(context, pattern)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("pattern", ["", None, 5, "a\nb", "a\x00b"])
async def test_a_pattern_must_be_one_line_of_text(pattern: object, context: ToolContext) -> None:
    with pytest.raises(ToolError, match="'pattern'"):
        await search(context, pattern)


async def test_a_pattern_that_looks_like_an_option_is_a_pattern(folder: Path, context: ToolContext) -> None:
    (folder / "a.txt").write_text("use --pre=evil here\n")
    assert await search(context, "--pre=evil") == "a.txt:1:use --pre=evil here"
    (folder / "--files").write_text("use --pre=evil here\n")
    assert await search(context, "use", path="--files") == "--files:1:use --pre=evil here"


async def test_long_lines_are_cut(folder: Path, context: ToolContext) -> None:
    (folder / "a.js").write_text("x" * 600_000 + "\n")
    assert len(await search(context, "xx")) < 700


async def test_very_many_matches_are_cut_at_a_whole_line(folder: Path, context: ToolContext) -> None:
    (folder / "a.txt").write_text("needle and thread\n" * 90_000)
    lines = (await search(context, "needle")).splitlines()
    assert lines[-1].startswith("[cut at ")
    assert all(line.endswith(":needle and thread") for line in lines[:-1])


async def test_a_pattern_that_backtracks_for_ever_is_stopped(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rolling_chat.tools.search_files._TIMEOUT", 1)
    (folder / "a.txt").write_text("a" * 60 + "b\n")
    text = await search(context, "^(a+)+$")
    assert text in {"[stopped after 1 seconds: search in a narrower path]", "[no match for '^(a+)+$' in .]"}


async def test_what_git_ignores_is_left_out(folder: Path, context: ToolContext) -> None:
    for name in ("build/out.txt", "src/a.log", "src/keep.log", "src/deep/c.txt", "src/deep/b.txt", "a.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("needle\n")
    (folder / ".gitignore").write_text("/build/\n*.log\n!keep.log\n[z-a\n")
    (folder / "src" / ".gitignore").write_text("deep/b.txt\n")
    expected = ["a.txt", "src/deep/c.txt", "src/keep.log"]
    assert [line.partition(":")[0] for line in (await search(context, "^needle")).splitlines()] == expected
    below = (await search(context, "^needle", path="src")).splitlines()
    assert [line.partition(":")[0] for line in below] == expected[1:], "rules above the path count, too"
    assert await search(context, "needle", path="src/a.log") == "src/a.log:1:needle", "a file that is named"


async def test_a_rule_file_outside_the_folder_and_those_of_other_tools_do_not_count(
    folder: Path, context: ToolContext
) -> None:
    (folder.parent / ".gitignore").write_text("*\n")
    (folder / ".ignore").write_text("*.txt\n")
    (folder / "a.txt").write_text("needle\n")
    assert await search(context, "^needle") == "a.txt:1:needle"


@pytest.mark.slow
async def test_folders_nested_deep_are_searched_to_the_end(folder: Path, context: ToolContext) -> None:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(_DEEP):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    for name in ("a", "z"):
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=here))
    with os.fdopen(os.open("m", os.O_WRONLY | os.O_CREAT, dir_fd=here), "w") as file:
        file.write("needle\n")
    os.close(here)
    (folder / "e.txt").write_text("needle\n")
    try:
        found = (await search(context, "needle")).splitlines()
    finally:
        await asyncio.to_thread(
            subprocess.run, ["rm", "-rf", folder / "d"], check=True
        )  # too deep for rmtree
    assert found == ["d/" * _DEEP + "m:1:needle", "e.txt:1:needle"]


@pytest.mark.parametrize("name", ["x\nforged.txt:1:needle", "x\x1b[2J", "x\r", "x\u2028y", "x\u202ey"])
async def test_a_name_cannot_forge_a_line(name: str, folder: Path, context: ToolContext) -> None:
    (folder / name).write_text("needle\x0bone\u2028line\r\n")
    text = await search(context, "needle")
    assert text.count("\n") == 0
    assert text == f"{printable(name, 0)}:1:needle\x0bone\u2028line"
    assert await search(context, "needle", path=name) == text


async def test_many_matches_and_marks_of_encoding_are_the_same(folder: Path, context: ToolContext) -> None:
    (folder / "b.txt").write_bytes(b"\xef\xbb\xbfneedle first\ncaf\xe9 needle\n")
    (folder / "B.txt").write_text("needle\n")
    (folder / "a").mkdir()
    (folder / "a" / "x").write_text("needle\n")
    (folder / "a.txt").write_text("needle " + "x" * 600 + "\n")
    found = (await search(context, "^needle|needle$")).splitlines()
    assert found == [
        "B.txt:1:needle", "a/x:1:needle", f"a.txt:1:needle {'x' * 493} [… line cut]",
        "b.txt:1:needle first", "b.txt:2:caf\ufffd needle",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("print('fault: boom'); raise SystemExit(3)", "boom"),
        ("print('boom'); raise SystemExit(7)", "boom"),
        ("import os; os.kill(os.getpid(), 9)", "it ended with -9"),
        ("print('boom'); raise SystemExit(1)", "boom"),
    ],
)
async def test_a_search_that_breaks_is_not_taken_for_one_that_found_nothing(
    context: ToolContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    path = tmp_path / "search.py"
    path.write_text(script)
    monkeypatch.setattr(search_process, "__file__", str(path))
    with pytest.raises(ToolError, match=f"The search broke: .*{said}") as raised:
        await search(context, "x")
    assert "\n" not in str(raised.value)
