"""The diff that is shown is the change that is made."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.tools import ToolError
from rolling_chat.tools.diffs import MAX_DIFF, count_of, diff_of
from rolling_chat.tools.file_changes import FileChange, FileVersion
from tests.support.patching import patched

FOLDER = Path("/work")
LINES = st.lists(st.sampled_from(["a", "b", "", "-- x", "++ y", "@@ z", "c\x0bd", "\u2028"]), max_size=30)


def _change(before: bytes | None, after: bytes | None, name: str = "a.txt") -> FileChange:
    versions = (None if data is None else FileVersion(data, 0o644) for data in (before, after))
    return FileChange(FOLDER / name, *versions)


def _diff(before: bytes | None, after: bytes | None) -> str:
    return diff_of([_change(before, after)], FOLDER)


def test_a_change_is_a_unified_diff_with_three_lines_of_context() -> None:
    old = "".join(f"{number}\n" for number in range(1, 31)).encode()
    new = old.replace(b"10\n", b"ten\n").replace(b"25\n", b"")
    assert _diff(old, new).split("\n") == [
        "--- a/a.txt", "+++ b/a.txt",
        "@@ -7,7 +7,7 @@", " 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13",
        "@@ -22,7 +22,6 @@", " 22", " 23", " 24", "-25", " 26", " 27", " 28",
    ]  # fmt: skip
    assert count_of([_change(old, new)]) == "+1 -2"


def test_new_and_deleted_files_are_against_nothing() -> None:
    assert _diff(None, b"a\nb\n") == "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,2 @@\n+a\n+b"
    assert _diff(b"a\n", None) == "--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-a"
    assert _diff(None, b"") == "--- /dev/null\n+++ b/a.txt\nan empty file"


def test_a_missing_final_newline_is_said() -> None:
    assert _diff(b"a", b"a\n").endswith("-a\n\\ No newline at end of file\n+a")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (b"a\n", codecs.BOM_UTF8 + b"a\n", "UTF-8 LF becomes UTF-8 with a byte order mark LF"),
        (b"a\nb\n", b"a\r\nb\r\n", "UTF-8 LF becomes UTF-8 CRLF"),
        (None, codecs.BOM_UTF8 + b"a\n", "UTF-8 with a byte order mark LF"),
        (None, b"a\r\n", "UTF-8 CRLF"),
        (b"\x00\x01", b"\x00", "a binary file of 2 bytes becomes a binary file of 1 byte"),
        (b"\x00\x01", None, "a binary file of 2 bytes"),
    ],
)
def test_what_no_line_can_show_is_said_in_a_line(
    before: bytes | None, after: bytes | None, said: str
) -> None:
    assert said in _diff(before, after).split("\n")


def test_a_mode_and_a_link_are_said() -> None:
    change = FileChange(FOLDER / "a", FileVersion(b"", 0o4755), FileVersion(b"", 0o755))
    assert "mode 4755 becomes 755" in diff_of([change], FOLDER)
    link = FileChange(FOLDER / "a", FileVersion(b"../x\n\x1b", 0o777, is_link=True), None)
    assert diff_of([link], FOLDER).split("\n")[2:] == ["a symbolic link", "@@ -1 +0,0 @@", "--> ../x␊␛"]


def test_line_ends_that_change_in_a_mixed_file_are_shown() -> None:
    diff = _diff(b"a\nb\r\nc\n", b"a\nb\nc\r\n")
    assert "-b\r" in diff.split("\n")
    assert "+c\r" in diff.split("\n")


def test_a_move_is_two_names_and_no_lines() -> None:
    version = FileVersion(b"a\n" * 10_000, 0o644)
    changes = FileChange(FOLDER / "b.txt", None, version), FileChange(FOLDER / "a.txt", version, None)
    assert diff_of(changes, FOLDER) == "rename from a.txt\nrename to b.txt"
    assert count_of(changes) == ""


def test_names_are_shown_in_one_line() -> None:
    diff = diff_of([_change(b"a\n", b"b\n", "x\n+++ b/\u202ey")], FOLDER)
    assert diff.split("\n")[2].startswith("@@")
    assert "\u202e" not in diff


def test_a_diff_that_is_too_long_to_be_shown_is_refused() -> None:
    with pytest.raises(ToolError, match="too many to show: make it in parts"):
        _diff(None, b"a\n" * MAX_DIFF)


def test_a_long_file_can_be_deleted_all_the_same() -> None:
    said = _diff(b"a\n" * MAX_DIFF, None).split("\n")
    assert said == [
        "--- a/a.txt",
        "+++ /dev/null",
        "a file of 200,000 lines, 400,000 bytes: too long to be shown",
    ]


@given(LINES, LINES, st.booleans(), st.booleans())
def test_the_diff_makes_the_new_text_of_the_old(
    old: list[str], new: list[str], ends: bool, end: bool
) -> None:
    before = "\n".join(old) + "\n" * ends
    after = "\n".join(new) + "\n" * end
    assert patched(before, _diff(before.encode(), after.encode())) == after


@given(LINES, LINES, LINES, LINES)
def test_also_where_both_are_too_long_to_be_compared_line_by_line(
    head: list[str], old: list[str], new: list[str], tail: list[str]
) -> None:
    body = [str(number) for number in range(2_100)]
    before = "\n".join([*head, *old, *body, *old, *tail])
    after = "\n".join([*head, *new, *reversed(body), *new, *tail])
    assert patched(before, _diff(before.encode(), after.encode())) == after


@given(st.text("ab\r\n", max_size=30), st.text("ab\r\n", max_size=30))
def test_no_two_contents_have_an_empty_diff(before: str, after: str) -> None:
    lines = _diff(before.encode(), after.encode()).split("\n")[2:]
    assert (lines == []) == (before == after)
