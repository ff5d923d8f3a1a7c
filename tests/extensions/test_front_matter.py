"""Front matter is read as people write it, and what is hostile in it is a line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.extensions.front_matter import MAX_BYTES, FrontMatterError, parse_markdown


def test_fields_and_text_are_told_apart() -> None:
    file = parse_markdown(
        b"---\r\nname: pdf\r\nmetadata:\r\n  version: 1.0\r\n  at: 2026-01-02\r\n---\r\n\r\nBody\r\n"
    )
    assert file.text("name", 99) == "pdf"
    assert dict(file.table("metadata", 99)) == {"version": "1.0", "at": "2026-01-02"}
    assert file.body == "Body"


@pytest.mark.parametrize(
    "text", ["Only a text.", "----\nname: x\n---\n", "---\nno end", "", " ---\na: b\n---\n"]
)
def test_a_text_without_front_matter_is_all_text(text: str) -> None:
    file = parse_markdown(text.encode())
    assert (dict(file.fields), file.body) == ({}, text.strip())


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("description: Use when: the user asks", "Use when: the user asks"),
        ("description: [a] [b]", "[a] [b]"),
        ('description: "quoted: still"', "quoted: still"),
        ("description: >\n  folded\n  lines", "folded lines"),
        ("description: 7", "7"),
        ("description: {a: b}", ""),
        ("description: 'two\n\n  lines'", "two lines"),
        ('description: "\\e[2J\\x07 hidden"', "␛[2J␇ hidden"),
    ],
)
def test_a_description_is_one_line_however_it_was_written(front: str, expected: str) -> None:
    assert parse_markdown(f"---\n{front}\n---\nx".encode()).text("description", 1_000) == expected


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("allowed-tools: Bash(git:*) Read", ("Bash(git:*)", "Read")),
        ("allowed-tools: Bash(git add *), Read", ("Bash(git add *)", "Read")),
        ("allowed-tools:\n  - Read\n  - [x]", ("Read",)),
    ],
)
def test_a_list_is_read_in_each_of_its_forms(front: str, expected: tuple[str, ...]) -> None:
    assert parse_markdown(f"---\n{front}\n---\nx".encode()).words("allowed-tools", 100) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"---\na: {\n---\nx",
        b"---\n- a\n---\nx",
        b"---\na: \x1b]0;pwned\x07\n---\nx",
        b"---\na: " + b"[" * 9_000 + b"\n---\nx",
        b"---\na: " + b"9" * 9_000 + b"\n---\nx",
        b"---\na: !!python/object/apply:os.system [touch made]\n---\nx",
        b"---\na: " + b"x" * 30_000 + b"\n---\nx",
        b"x" * (MAX_BYTES + 1),
    ],
    ids=["open", "a list", "control", "deep", "number", "object", "long", "large"],
)
def test_what_cannot_be_used_says_why_in_a_line(data: bytes) -> None:
    with pytest.raises(FrontMatterError) as caught:
        parse_markdown(data)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


def test_references_that_multiply_take_no_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    file = parse_markdown(("---\n" + "\n".join(lines) + "\nname: ok\n---\nx").encode())
    assert file.text("name", 10) == "ok"
    assert file.words("a29", 10) == ()


FRONTED = st.text(max_size=300).map(lambda text: f"---\n{text}\n---\nx".encode("utf-8", "replace"))


@given(st.one_of(st.binary(max_size=300), FRONTED))
def test_whatever_a_file_holds_it_is_read_or_refused_in_a_line(data: bytes) -> None:
    assert all(line.isprintable() for line in _lines_of(data))


def _lines_of(data: bytes) -> Iterator[str]:
    """The fields of a file as lines, or why it is refused."""
    try:
        file = parse_markdown(data)
    except FrontMatterError as error:
        yield str(error)
        return
    yield from (file.text(name, 80) for name in file.fields)
    yield "".join(char for char in file.body if ord(char) < 0x20 and char not in "\n\t")
