from __future__ import annotations

import os
from pathlib import Path

import pytest

from rolling_chat.tools import ToolContext, ToolError, outline
from rolling_chat.tools.outline import Outline


async def outlined(context: ToolContext, path: str) -> str:
    return (await Outline().run({"path": path}, context)).text


async def test_a_file_gives_its_signatures_with_their_lines(folder: Path, context: ToolContext) -> None:
    (folder / "a.py").write_bytes("\ufeffclass A:\r\n    def f(self, x: int) -> str: ...\r\n".encode())
    assert await outlined(context, "a.py") == "a.py\n    1  class A\n    2    def f(self, x: int) -> str"
    (folder / "b.py").write_text("x = 1\n")
    assert await outlined(context, "b.py") == "b.py\n[no class or function found]"


async def test_a_folder_gives_the_outlines_of_its_files(folder: Path, context: ToolContext) -> None:
    for name in (
        "src/a.py",
        "src/sub/b.js",
        "src/ignored/c.py",
        "src/sub/data.bin",
        "other.py",
        "src/empty.py",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(
            "" if "empty" in name else "class A {\n}\n" if "js" in name else "class A: ...\n"
        )
    (folder / ".gitignore").write_text("ignored/\n")
    (folder / "src" / "bin.py").write_bytes(b"class B\0")
    (folder / "src" / "link.py").symlink_to(folder.parent / "outside.txt")
    os.mkfifo(folder / "src" / "pipe.py")
    text = await outlined(context, "src")
    assert text == "src/a.py\n    1  class A\nsrc/sub/b.js\n    1  class A"
    assert "src/a.py\n    1  class A" in await outlined(context, ".")
    assert "ignored" not in await outlined(context, ".")


async def test_what_is_beyond_the_caps_is_counted(
    folder: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outline, "_MAX_FILES", 2)
    monkeypatch.setattr(outline, "_MAX_LINES", 3)
    for number in range(5):
        (folder / f"{number}.py").write_text("def f(): ...\ndef g(): ...\n")
    text = await outlined(context, ".")
    assert text.endswith(
        "[3 more lines left out: outline a smaller part]\n[3 more files left out: outline a folder below]"
    )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("a.xyz", "of no language that outline knows"),
        ("none.py", "There is no"),
        ("../outside.py", "outside the working folder"),
        ("binary.py", "is binary data, not a source file"),
        ("big.py", "has 1,000,001 bytes"),
        ("empty", "no source file in empty"),
    ],
)
async def test_what_has_no_outline_is_told_in_one_line(
    path: str, said: str, folder: Path, context: ToolContext
) -> None:
    (folder / "a.xyz").touch()
    (folder / "empty").mkdir()
    (folder / "binary.py").write_bytes(b"a\0b")
    (folder / "big.py").write_bytes(b"#" * 1_000_001)
    with pytest.raises(ToolError, match=said):
        await outlined(context, path)


async def test_a_name_cannot_forge_a_line(folder: Path, context: ToolContext) -> None:
    (folder / "a\nb.py").write_text("def f(): ...\n")
    assert (await outlined(context, ".")).count("\n") == 1
