from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from rolling_chat.tools import ToolContext, ToolError
from rolling_chat.tools.decoding import MAX_RESULT_BYTES
from rolling_chat.tools.read_file import ReadFile


async def read(context: ToolContext, path: str = "a.txt", **lines: object) -> str:
    return (await ReadFile().run({"path": path, **lines}, context)).text


async def test_a_whole_file_comes_as_it_is(folder: Path, context: ToolContext) -> None:
    (folder / "a.txt").write_bytes("one\r\ntwo\n\tdrei – ü\n".encode())
    assert await read(context) == "one\r\ntwo\n\tdrei – ü\n"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ({"start": 2, "end": 3}, "[lines 2-3 of 4 of a.txt]\nl2\nl3\n"),
        ({"start": 4}, "[lines 4-4 of 4 of a.txt]\nl4"),
        ({"end": 1}, "[lines 1-1 of 4 of a.txt]\nl1\n"),
        ({"start": "2", "end": 2.0}, "[lines 2-2 of 4 of a.txt]\nl2\n"),
        ({"start": 3, "end": 900}, "[lines 3-4 of 4 of a.txt]\nl3\nl4"),
        ({"start": 1, "end": 900}, "l1\nl2\nl3\nl4"),
        ({"start": None, "end": ""}, "l1\nl2\nl3\nl4"),
    ],
)
async def test_lines_count_from_one_and_include_the_last(
    lines: dict[str, object], expected: str, folder: Path, context: ToolContext
) -> None:
    (folder / "a.txt").write_text("l1\nl2\nl3\nl4")
    assert await read(context, **lines) == expected


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ({"start": 5}, "a.txt has 4 lines; line 5 is beyond its end"),
        ({"start": 0}, "'start' must be 1 or more"),
        ({"start": -3}, "'start' must be 1 or more"),
        ({"start": 3, "end": 2}, "'end' .2. must not be below 'start' .3."),
        ({"start": "two"}, "'start' must be a whole number"),
        ({"start": 1.5}, "'start' must be a whole number"),
        ({"start": True}, "'start' must be a whole number"),
        ({"start": [1]}, "'start' must be a whole number"),
        ({"start": float("nan")}, "'start' must be a whole number"),
        ({"start": "9" * 5_000}, "'start' must be a whole number"),
    ],
)
async def test_lines_that_cannot_be_are_refused(
    lines: dict[str, object], said: str, folder: Path, context: ToolContext
) -> None:
    (folder / "a.txt").write_text("l1\nl2\nl3\nl4")
    with pytest.raises(ToolError, match=said):
        await read(context, **lines)


@pytest.mark.parametrize("arguments", [{}, {"path": ""}, {"path": 7}, {"path": ["a"]}, {"file": "a.txt"}])
async def test_a_path_that_is_missing_or_no_text_is_refused(
    arguments: dict[str, object], context: ToolContext
) -> None:
    with pytest.raises(ToolError, match="'path'"):
        await ReadFile().run(arguments, context)


async def test_an_empty_file_is_said_to_be_empty(folder: Path, context: ToolContext) -> None:
    (folder / "a.txt").touch()
    assert await read(context) == "[a.txt is empty]"


async def test_a_folder_points_to_the_tool_that_lists_it(folder: Path, context: ToolContext) -> None:
    (folder / "sub").mkdir()
    with pytest.raises(ToolError, match="sub is a folder; list_files"):
        await read(context, "sub")
    with pytest.raises(ToolError, match="is a folder; list_files"):
        await read(context, ".")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x7fELF\x02\x01\x00\x00rest", "an ELF program or library"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a PNG picture"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "a WebP picture"),
        (b"a.txt" + b"\x00" * 252 + b"ustar", "a tar archive"),
        (b"%PDF-1.7 all text", "a PDF document"),
        (b"\xef\xbb\xbfa\x00b", "binary data"),
        ("no mark".encode("utf-16-le"), "binary data"),
    ],
)
async def test_of_a_binary_file_kind_and_size_are_told(
    data: bytes, kind: str, folder: Path, context: ToolContext
) -> None:
    (folder / "a.bin").write_bytes(data)
    with pytest.raises(ToolError, match=rf"a\.bin is {kind} of {len(data)} bytes, a binary file"):
        await read(context, "a.bin")


async def test_a_long_line_among_others_is_cut_with_its_length(folder: Path, context: ToolContext) -> None:
    (folder / "a.js").write_text("one\n" + "x" * 5_000 + "\nthree\n")
    result = await ReadFile().run({"path": "a.js"}, context)
    cut = f"{'x' * 2_000} [… cut: this line has 5,000 characters; start=2, end=2 shows it alone]"
    assert result.text == f"one\n{cut}\nthree\n"
    assert result.files[0].action == "read in part", "it must not be overwritten as if all of it was seen"
    assert await read(context, "a.js", start=2) == f"[lines 2-3 of 3 of a.js]\n{cut}\nthree\n"
    assert await read(context, "a.js", start=2, end=2) == f"[lines 2-2 of 3 of a.js]\n{'x' * 5_000}\n"


async def test_a_file_of_one_line_is_shown_whole(folder: Path, context: ToolContext) -> None:
    (folder / "a.json").write_text("[" + "1," * 5_000 + "1]\n")
    result = await ReadFile().run({"path": "a.json"}, context)
    assert len(result.text) == 10_004
    assert result.files[0].action == "read"


async def test_lines_of_utf_16_end_where_other_files_lines_do(folder: Path, context: ToolContext) -> None:
    (folder / "a.txt").write_bytes("\ufeffone\rone\u2028one\r\ntwo".encode("utf-16-le"))
    assert await read(context) == "one\rone\u2028one\r\ntwo"
    assert await read(context, start=2) == "[lines 2-2 of 2 of a.txt]\ntwo"


async def test_bytes_that_are_no_text_are_replaced(folder: Path, context: ToolContext) -> None:
    (folder / "a.txt").write_bytes(b"caf\xe9 " + b"x" * 9_000 + b"\x00end")
    text = await read(context)
    assert text.startswith("caf\ufffd x")
    assert text.endswith("x\ufffdend")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-8"])
async def test_a_byte_order_mark_names_the_encoding(
    encoding: str, folder: Path, context: ToolContext
) -> None:
    marks = {
        "utf-16-le": codecs.BOM_UTF16_LE,
        "utf-16-be": codecs.BOM_UTF16_BE,
        "utf-32-le": codecs.BOM_UTF32_LE,
        "utf-8": codecs.BOM_UTF8,
    }
    (folder / "a.txt").write_bytes(marks[encoding] + "größer\nzwei\n".encode(encoding))
    assert await read(context) == "größer\nzwei\n"
    assert await read(context, start=2) == "[lines 2-2 of 2 of a.txt]\nzwei\n"


async def test_a_huge_file_is_cut_and_says_where_it_goes_on(folder: Path, context: ToolContext) -> None:
    line = b"0123456789abcde\n"
    (folder / "a.txt").write_bytes(line * (MAX_RESULT_BYTES // len(line) * 2))
    text = await read(context)
    header, _, rest = text.partition("\n")
    assert header == ("[lines 1-625000 of a.txt, cut at 10 MB; the file goes on: read it with start and end]")
    assert len(rest) == MAX_RESULT_BYTES
    assert (await read(context, start=1_250_000)).endswith("of a.txt]\n0123456789abcde\n")


async def test_one_endless_line_takes_bounded_memory(folder: Path, context: ToolContext) -> None:
    (folder / "a.txt").write_bytes(b"x" * (3 * MAX_RESULT_BYTES))
    assert len(await read(context)) < MAX_RESULT_BYTES + 200


def test_the_description_names_path_and_lines() -> None:
    tool = ReadFile()
    assert tool.describe({"path": "a.py"}) == "read_file a.py"
    assert tool.describe({"path": "a.py", "start": 3}) == "read_file a.py lines 3-end"
    assert tool.describe({"path": "a.py", "end": 9}) == "read_file a.py lines 1-9"
