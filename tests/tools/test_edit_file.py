"""edit_file and multi_edit: right to the byte, or refused with the reason."""

from __future__ import annotations

import codecs
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rolling_chat.messages import GONE, JsonObject
from rolling_chat.tools import ToolContext, ToolError, ToolResult
from rolling_chat.tools.edit_file import EditFile, MultiEdit
from rolling_chat.tools.file_changes import ChangedMeanwhileError
from tests.support.patching import patched

CONTENT = b"one\ntwo\nthree\n"
ENCODINGS = [
    (b"", "utf-8"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (b"", "latin-1"),
]


@pytest.fixture
def file(folder: Path) -> Path:
    file = folder / "a.txt"
    file.write_bytes(CONTENT)
    return file


def _edit(context: ToolContext, **arguments: object) -> ToolResult:
    return EditFile().prepare({"path": "a.txt", **arguments}, context).make(context)


def _multi(context: ToolContext, *edits: object) -> ToolResult:
    return MultiEdit().prepare({"path": "a.txt", "edits": list(edits)}, context).make(context)


def test_a_text_is_replaced_and_the_model_reads_how_much(file: Path, context: ToolContext) -> None:
    result = _edit(context, old="two", new="2\n2")
    assert file.read_bytes() == b"one\n2\n2\nthree\n"
    assert result.text == "Edited a.txt: +2 -1"
    assert result.shown == "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2\n three"
    (touch,) = result.files
    assert (touch.path, touch.action, len(touch.sha256)) == (str(file), "written in part", 64)
    assert touch.sha256 != GONE


def test_a_file_that_was_known_is_known_after_an_edit(file: Path, context: ToolContext) -> None:
    known = hashlib.sha256(CONTENT).hexdigest()
    context = replace(context, last_seen={str(file): known}.get)
    (touch,) = _edit(context, old="two", new="2").files
    assert touch.action == "written"
    (touch,) = _edit(context, old="2", new="3").files  # as somebody else left it
    assert touch.action == "written in part"


def test_every_occurrence_is_replaced_if_asked(file: Path, context: ToolContext) -> None:
    result = _edit(context, old="e", new="E", all="true")
    assert file.read_bytes() == b"onE\ntwo\nthrEE\n"
    assert result.text == "Edited a.txt in 3 places: +2 -2"


def test_an_empty_new_text_deletes(file: Path, context: ToolContext) -> None:
    _edit(context, old="two\n", new="")
    assert file.read_bytes() == b"one\nthree\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"old": "four", "new": "x"}, "`old` is not in a.txt"),
        ({"old": "e", "new": "x"}, "3 times in a.txt, at lines 1, 3, 3"),
        ({"old": "two", "new": "two"}, "Nothing would change in a.txt"),
        ({"old": "", "new": "x"}, "'old' is missing.*write_file makes new files"),
        ({"old": "two"}, "'new' is missing"),
        ({"old": "two", "new": 2}, "'new' is missing: give it as text"),
        ({"old": ["two"], "new": ""}, "'old' is missing"),
        ({"old": "two", "new": "x", "all": "perhaps"}, "'all' must be true or false"),
        ({"path": "b.txt", "old": "two", "new": "x"}, "no “b.txt” in the working folder"),
        ({"path": ".", "old": "two", "new": "x"}, "“work” is a folder"),
        ({"path": "", "old": "two", "new": "x"}, "'path' is missing"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(
    file: Path, context: ToolContext, arguments: JsonObject, said: str
) -> None:
    with pytest.raises(ToolError, match=said) as caught:
        _edit(context, **arguments)
    assert "\n" not in str(caught.value)
    assert file.read_bytes() == CONTENT


def test_edits_are_applied_one_to_the_result_of_the_other(file: Path, context: ToolContext) -> None:
    result = _multi(context, {"old": "one", "new": "1"}, {"old": "1\ntwo", "new": "1\n2"})
    assert file.read_bytes() == b"1\n2\nthree\n"
    assert result.text == "Edited a.txt in 2 places: +2 -2"


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([{"old": "one", "new": "1"}, {"old": "four", "new": "4"}], "Edit 2 of 2: `old` is not in a.txt"),
        ([{"old": "one", "new": "1"}, {"old": "1", "new": "one"}], "Nothing would change"),
        ([{"old": "one", "new": "1"}, "two"], "Edit 2 must be an object"),
        ([{"old": "one", "new": "1"}, {"old": "two"}], "Edit 2 of 2: .*'new' is missing"),
        ([], "'edits' must be a list"),
        ("one", "'edits' must be a list"),
        ({"old": "one", "new": "1"}, "'edits' must be a list"),
    ],
)
def test_of_several_edits_all_are_made_or_none(
    file: Path, context: ToolContext, edits: object, said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        MultiEdit().prepare({"path": "a.txt", "edits": edits}, context)
    assert file.read_bytes() == CONTENT


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o444])
def test_the_mode_stays(file: Path, context: ToolContext, mode: int) -> None:
    file.chmod(mode)
    _edit(context, old="two", new="2")
    assert file.stat().st_mode & 0o7777 == mode


def test_a_file_that_runs_as_another_user_does_so_no_longer_and_the_diff_says_so(
    file: Path, context: ToolContext
) -> None:
    file.chmod(0o4755)
    result = _edit(context, old="two", new="2")
    assert file.stat().st_mode & 0o7777 == 0o755
    assert "mode 4755 becomes 755" in result.shown


def test_through_a_link_the_file_is_edited_and_the_link_stays(file: Path, context: ToolContext) -> None:
    link = file.with_name("link")
    link.symlink_to("a.txt")
    result = EditFile().prepare({"path": "link", "old": "two", "new": "2"}, context).make(context)
    assert link.is_symlink()
    assert file.read_bytes() == b"one\n2\nthree\n"
    assert result.text.startswith("Edited a.txt")


def test_what_changed_after_it_was_shown_is_not_written(file: Path, context: ToolContext) -> None:
    edit = EditFile().prepare({"path": "a.txt", "old": "two", "new": "2"}, context)
    file.write_bytes(b"theirs\n")
    with pytest.raises(ChangedMeanwhileError, match="was changed by somebody else: nothing was changed"):
        edit.make(context)
    assert file.read_bytes() == b"theirs\n"


TEXTS = st.text(st.sampled_from("ab\té\u00a0漢🙂 '\"\u2019\r\n"), max_size=40)
OLDS = st.text(st.sampled_from("abé '\n"), min_size=1, max_size=4)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    head=TEXTS, old=OLDS, tail=TEXTS, new=TEXTS, form=st.sampled_from(ENCODINGS), misses=st.booleans(),
    returns=st.booleans(),
)  # fmt: skip
def test_an_edit_is_right_to_the_byte_or_refused_with_the_reason(  # noqa: PLR0917
    folder: Path, context: ToolContext, head: str, old: str, tail: str, new: str, form: tuple[bytes, str],
    misses: bool, returns: bool,
) -> None:  # fmt: skip
    """The bytes around the replaced span are compared, and so are the diff and what it makes of the text."""
    mark, encoding = form
    if returns:
        head, old, tail = (text.replace("\n", "\r\n") for text in (head, old, tail))
    encode = [text.encode(encoding, "ignore") for text in (head, old, tail)]
    data = mark + b"".join(encode)
    file = folder / "a.txt"
    file.write_bytes(data)
    asked = old.encode(encoding, "ignore").decode(encoding) + "!" * misses
    try:
        edit = EditFile().prepare({"path": "a.txt", "old": asked, "new": new}, context)
        shown = edit.diff
    except ToolError as error:
        refusal = str(error)
        assert file.read_bytes() == data
        assert "\n" not in refusal
        return
    edit.make(context)
    written = file.read_bytes()
    _require_same_outside(data, written, asked, encoding, mark)
    decoded = [each[len(mark) :].decode(encoding if encoding != "latin-1" else "utf-8", "surrogateescape")
               for each in (data, written)]  # fmt: skip
    if not any("\r" in text for text in decoded):
        assert patched(decoded[0], shown) == decoded[1]


def _require_same_outside(data: bytes, written: bytes, old: str, encoding: str, mark: bytes) -> None:
    """Cut some occurrence of `old`, in either line end, out of the data: the rest frames the result."""
    text = data[len(mark) :].decode(encoding)
    wanted = old.replace("\r\n", "\n")
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            if text[start:end].replace("\r\n", "\n") != wanted:
                continue
            before, after = mark + text[:start].encode(encoding), text[end:].encode(encoding)
            if written.startswith(before) and written.endswith(after):
                return
    raise AssertionError((data, written, old))
