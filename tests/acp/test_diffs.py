"""Unified diffs taken apart into the old and the new text of each hunk."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rolling_chat.acp.content import diff_content
from rolling_chat.acp.diffs import read_diff
from rolling_chat.tools.diffs import diff_of
from rolling_chat.tools.file_changes import FileChange, FileVersion

FOLDER = Path("/w")


def _change(old: str | None, new: str | None) -> FileChange:
    def version(text: str | None) -> FileVersion | None:
        return None if text is None else FileVersion(text.encode(), 0o644)

    return FileChange(FOLDER / "x.py", version(old), version(new))


_LINES = st.lists(st.sampled_from(["a", "b", "", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "\\ No newline", "é"]))
_TEXTS = st.tuples(_LINES, st.booleans()).map(lambda made: "\n".join(made[0]) + "\n" * made[1])


@given(_TEXTS, _TEXTS)
def test_the_hunks_of_a_change_make_the_new_file_of_the_old_one(old: str, new: str) -> None:
    if old == new:
        return
    read = read_diff(diff_of([_change(old, new)], FOLDER))
    if read is None:
        return
    made = old
    for hunk in reversed(read.hunks):
        assert hunk.old is not None
        lines = made.splitlines(keepends=True)
        place = "".join(lines[: hunk.line - 1])
        start = len(place) if made.startswith(hunk.old, len(place)) else made.index(hunk.old)
        made = made[:start] + hunk.new + made[start + len(hunk.old) :]
    if len(read.hunks) == 1:
        assert made == new


def test_a_new_file_has_no_old_text() -> None:
    read = read_diff(diff_of([_change(None, "one\ntwo")], FOLDER))
    assert read is not None
    (hunk,) = read.hunks
    assert (hunk.name, hunk.old, hunk.new, hunk.line) == ("x.py", None, "one\ntwo", 1)


def test_a_deleted_file_has_no_new_text() -> None:
    read = read_diff(diff_of([_change("one\n", None)], FOLDER))
    assert read is not None
    assert [(hunk.name, hunk.old, hunk.new) for hunk in read.hunks] == [("x.py", "one\n", "")]


@pytest.mark.parametrize(
    "diff",
    [
        "",
        "rename from a\nrename to b",
        "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-one",
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\nwhat",
        "--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n-one\n… and more, which /diff shows",
    ],
)
def test_what_is_no_whole_diff_is_shown_as_it_is(diff: str) -> None:
    assert read_diff(diff) is None
    (content,) = diff_content(diff, FOLDER)
    assert content.type == "content"
    assert content.content.text == f"```\n{diff}\n```"


def test_what_no_line_shows_is_said_below() -> None:
    before, after = FileVersion(b"a\n", 0o644), FileVersion(b"b\n", 0o755)
    hunk, note = diff_content(diff_of([FileChange(FOLDER / "x", before, after)], FOLDER), FOLDER)
    assert (hunk.type, hunk.path, hunk.old_text, hunk.new_text) == ("diff", "/w/x", "a\n", "b\n")
    assert "mode 644 becomes 755" in note.content.text


def test_what_is_to_be_approved_hides_nothing() -> None:
    diff = diff_of([_change("a\n", "pay = 1 \u202e# \u0430dmin\n")], FOLDER)
    (hunk,) = diff_content(diff, FOLDER, approves=True)
    assert hunk.new_text == "pay = 1 <U+202E># <U+0430>dmin\n"
