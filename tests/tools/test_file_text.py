"""A file's bytes as text and back: an edit changes the bytes that it names, and no others."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.tools import ToolError
from rolling_chat.tools.file_text import new_file_text, read_file_text

MARKED = [
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
]


@pytest.mark.parametrize(("mark", "encoding"), [(b"", "utf-8"), *MARKED])
def test_mark_and_encoding_stay(mark: bytes, encoding: str) -> None:
    file = read_file_text(mark + "naïve 漢字 🙂\r\nend".encode(encoding), "a")
    assert file.text == "naïve 漢字 🙂\nend"
    start = file.text.index("漢字")
    assert file.replaced([(start, start + 2)], "é\nx") == mark + "naïve é\r\nx 🙂\r\nend".encode(encoding)


@pytest.mark.parametrize(
    ("data", "line_ends"),
    [(b"a\nb\n", "LF"), (b"a\r\nb\r\n", "CRLF"), (b"a\r\nb\n", "mixed line ends"), (b"a\rb", ""), (b"", "")],
)
def test_the_kind_of_the_line_ends_is_known(data: bytes, line_ends: str) -> None:
    file = read_file_text(data, "a")
    assert file.line_ends == line_ends
    assert file.as_in_file.encode() == data


def test_new_lines_end_as_the_line_does_that_they_replace() -> None:
    file = read_file_text(b"one\r\ntwo\nthree\r\n", "a")
    assert file.replaced([(0, 3)], "1\n1") == b"1\r\n1\r\ntwo\nthree\r\n"
    assert file.replaced([(4, 7)], "2\r\n2") == b"one\r\n2\n2\nthree\r\n"


def test_a_lone_carriage_return_is_a_character_of_its_line() -> None:
    file = read_file_text(b"a\rb\r\r\nc\n", "a")
    assert file.replaced([(0, 1)], "x") == b"x\rb\r\r\nc\n"


def test_bytes_that_are_not_utf_8_stay_and_only_ascii_is_put_between_them() -> None:
    file = read_file_text(b"caf\xe9 one\n", "a")
    start = file.text.index("one")
    assert file.replaced([(start, start + 3)], "two") == b"caf\xe9 two\n"
    with pytest.raises(ToolError, match="only ASCII can be written"):
        file.replaced([(0, 3)], "thé")


@pytest.mark.parametrize("new", map(chr, [0xD800, 0xDCE9, 0xDFFF]))
@pytest.mark.parametrize(("mark", "encoding"), MARKED)
def test_half_a_character_is_refused_and_becomes_no_stray_byte(new: str, mark: bytes, encoding: str) -> None:
    file = read_file_text(mark + "abc".encode(encoding), "a")
    with pytest.raises(ToolError, match="is half a character"):
        file.replaced([(0, 1)], new)
    with pytest.raises(ToolError, match="is half a character"):
        file.rewritten(new)


@pytest.mark.parametrize(("mark", "encoding"), [(b"", "utf-8"), *MARKED])
def test_a_nul_is_refused_in_every_encoding(mark: bytes, encoding: str) -> None:
    file = read_file_text(mark + "abc".encode(encoding), "a")
    for write in (lambda: file.replaced([(0, 1)], "x\0"), lambda: file.rewritten("\0x")):
        with pytest.raises(ToolError, match=r"U\+0000 makes a file binary"):
            write()


@pytest.mark.parametrize(
    ("data", "start", "end"),
    [
        (codecs.BOM_UTF16_LE + "a\0b".encode("utf-16-le"), 0, 1),  # a mark of UTF-32
        (b"a\xff\xfebc", 0, 1),  # a mark of UTF-16
        (b"ab" * 8_192 + b"\0", 0, 16_000),  # a NUL among the first bytes
        (b"\xc3a\xa9", 1, 2),  # two stray bytes become a character
    ],
    ids=["utf-32", "utf-16", "binary", "joined"],
)
def test_an_edit_that_would_make_the_rest_another_text_is_refused(data: bytes, start: int, end: int) -> None:
    file = read_file_text(data, "a")
    with pytest.raises(ToolError, match="would no longer be read as"):
        file.replaced([(start, end)], "")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x7fELF\x00\x01", "is a binary file"),
        ("abc".encode("utf-16-le"), "is a binary file"),
        (codecs.BOM_UTF16_LE + b"a", "is not valid UTF-16"),
        (codecs.BOM_UTF16_LE + b"\x00\xd8a\x00", "is not valid UTF-16"),
        (codecs.BOM_UTF32_BE + b"\xff\xff\xff\xff", "is not valid UTF-32"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(ToolError, match=f"a.bin {said}"):
        read_file_text(data, "a.bin")


def test_other_content_takes_the_files_format() -> None:
    marked = read_file_text(codecs.BOM_UTF8 + b"a\r\nb\r\n", "a")
    assert marked.rewritten("x\ny") == codecs.BOM_UTF8 + b"x\r\ny\r\n"
    assert marked.rewritten("\ufeffx\r\n") == codecs.BOM_UTF8 + b"x\r\n"
    assert read_file_text(b"a", "a").rewritten("x") == b"x"
    assert new_file_text().rewritten("x\r\ny") == b"x\ny"
    assert marked.rewritten("") == codecs.BOM_UTF8


def test_thousands_of_places_in_one_long_line_are_replaced_in_one_pass() -> None:
    count = 20_000
    file = read_file_text(b"ab" * count + b"\r\nend\r\n", "a")
    spans = [(2 * index, 2 * index + 1) for index in range(count)]
    assert file.replaced(spans, "\n") == b"\r\nb" * count + b"\r\nend\r\n"


@given(st.binary())
def test_any_bytes_are_read_back_as_they_were_or_refused(data: bytes) -> None:
    try:
        file = read_file_text(data, "a")
    except ToolError:
        return
    assert file.replaced([], "") == data
